#include "comm/host_engine_loader.h"

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "base/check.h"
#include "base/shared_library.h"

namespace bev {

namespace {

namespace fs = std::filesystem;

struct Plugin {
  const char* library;      // as people call it
  const char* package;      // what runs it, on Debian
  const char* development;  // what builds it
  SharedLibrary::Symbols symbols;
};

Plugin plugin_of(CommBackend kind) {
  BEV_CHECK(kind == CommBackend::Mpi || kind == CommBackend::Gloo, Internal,
            "{} is no engine of a plug-in", name_of_choice(kind));
  // Open MPI loads parts of itself, which look for its symbols.
  if (kind == CommBackend::Mpi)
    return {"Open MPI", "libopenmpi3", "libopenmpi-dev", SharedLibrary::Symbols::Shared};
  return {"Gloo", "libgloo0", "libgloo-dev", SharedLibrary::Symbols::Own};
}

void require_this_build(const SharedLibrary& library) {
  const auto interface =
      reinterpret_cast<const char* (*)()>(library.find("bevatron_engine_interface"));
  BEV_CHECK(interface != nullptr && std::string_view(interface()) == BEV_ENGINE_INTERFACE, Comm,
            "{} is of another build than this program; build or copy both together",
            library.path());
}

// Loaded libraries stay, so that a second call finds the same one.
SharedLibrary load(CommBackend kind) {
  const Plugin plugin = plugin_of(kind);
  const std::string name = format("libbevatron-{}.so", name_of_choice(kind));
  std::error_code failed;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failed).parent_path();
  // The build folder, a bundle's program, a bundle's tests, and PREFIX/bin of an installation.
  const fs::path parent = folder.parent_path();
  const std::vector<fs::path> folders{folder, folder / "lib", parent / "lib",
                                      parent / "lib" / "bevatron"};
  std::vector<std::string> present;
  std::string looked;
  for (const fs::path& each : folders) {
    looked += (looked.empty() ? "" : ", ") + each.string();
    if (fs::exists(each / name, failed)) present.push_back((each / name).string());
  }
  BEV_CHECK(!present.empty(), Comm,
            "{} is not there, which moves tensors by {}; looked in {}. It is built where {} is "
            "installed when the build is configured",
            name, plugin.library, looked, plugin.development);
  std::string why;
  SharedLibrary library(present, plugin.symbols, why);
  BEV_CHECK(library.loaded(), Comm,
            "{} could not be loaded: {}. Is {} on this machine (on Debian: apt-get install {})?",
            present.front(), why, plugin.library, plugin.package);
  require_this_build(library);
  return library;
}

template <class F>
F entry(const SharedLibrary& library, const char* symbol) {
  void* address = library.find(symbol);
  BEV_CHECK(address != nullptr, Comm, "{} has no {}: it is of another version than this program",
            library.path(), symbol);
  return reinterpret_cast<F>(address);
}

template <class F>
auto in_words_of(const char* library, const F& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& e) {
    throw Error(ErrorKind::Comm, format("{}: {}", library, e.what()));
  }
}

const MpiBootstrap& bootstrap() {
  return *entry<GetMpiBootstrap>(load(CommBackend::Mpi), kMpiBootstrapEntry)();
}

}  // namespace

std::unique_ptr<HostEngine> load_host_engine(CommBackend kind, const HostEngineOptions& options) {
  const auto make = entry<MakeHostEngine>(load(kind), kHostEngineEntry);
  return in_words_of(plugin_of(kind).library,
                     [&] { return std::unique_ptr<HostEngine>(make(options)); });
}

MpiPlace mpi_place() {
  return in_words_of("MPI", [] { return bootstrap().place(); });
}

std::string mpi_broadcast(const std::string& from_first) {
  BEV_CHECK(from_first.size() <= kMostBroadcast, Internal,
            "a broadcast of {} bytes before the start", from_first.size());
  return in_words_of("MPI", [&] { return bootstrap().broadcast(from_first); });
}

}  // namespace bev
