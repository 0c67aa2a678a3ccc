#include "checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number_list.h"
#include "checkpoint/manifest.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "iter_";
constexpr std::string_view kRelease = "release";

std::optional<int64_t> iteration_of(std::string_view name) {
  if (name == kRelease) return 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  const auto value = parse_number<int64_t>(digits);
  // One spelling for each number, so that place_of() leads back.
  return value && format("{:07d}", *value) == digits ? value : std::nullopt;
}

constexpr std::array kHidden{CheckpointFolder::Hidden::Draft, CheckpointFolder::Hidden::Removed,
                             CheckpointFolder::Hidden::Replaced};

std::string_view suffix_of(CheckpointFolder::Hidden kind) {
  switch (kind) {
    case CheckpointFolder::Hidden::Draft: return ".writing";
    case CheckpointFolder::Hidden::Removed: return ".removing";
    case CheckpointFolder::Hidden::Replaced: return ".replaced";
  }
  return {};
}

}  // namespace

fs::path CheckpointFolder::place_of(int64_t iteration) const {
  return root_ / (iteration < 0 ? std::string(kRelease) : format("{}{:07d}", kPrefix, iteration));
}

fs::path CheckpointFolder::hidden_place(int64_t iteration, Hidden kind) const {
  return root_ / format(".{}{}", place_of(iteration).filename().string(), suffix_of(kind));
}

std::vector<CheckpointPlace> CheckpointFolder::list() const {
  std::vector<CheckpointPlace> found;
  std::error_code error;
  for (fs::directory_iterator entry(root_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    const std::optional<int64_t> iteration = iteration_of(name);
    if (iteration && entry->is_directory(ignored)) found.push_back({entry->path(), *iteration});
  }
  std::sort(found.begin(), found.end(), [](const CheckpointPlace& a, const CheckpointPlace& b) {
    const auto order = [](const CheckpointPlace& place) {
      return std::pair(place.path.filename() != kRelease, place.iteration);
    };
    return order(a) < order(b);
  });
  return found;
}

void CheckpointFolder::remove(int64_t iteration) const {
  const fs::path place = place_of(iteration), aside = hidden_place(iteration, Hidden::Removed);
  std::error_code error;
  fs::remove_all(aside, error);
  fs::rename(place, aside, error);
  if (!error) fs::remove_all(aside, error);
  BEV_CHECK(!error, Data, "cannot remove {}: {}", place.string(), error.message());
}

void CheckpointFolder::clear_leftovers() const {
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (fs::directory_iterator entry(root_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(tracker().filename().string() + ".partial."))
      leftovers.push_back(entry->path());
    for (const Hidden kind : kHidden) {
      const std::string_view suffix = suffix_of(kind);
      if (!name.starts_with('.') || !name.ends_with(suffix)) continue;
      const std::string middle = name.substr(1, name.size() - 1 - suffix.size());
      if (!iteration_of(middle)) continue;
      // Killed between the two renames: the old one is still the only one.
      std::error_code ignored, kept;
      if (kind == Hidden::Replaced && !fs::exists(root_ / middle, ignored))
        fs::rename(entry->path(), root_ / middle, kept);
      if (!kept) leftovers.push_back(entry->path());
    }
  }
  for (const fs::path& path : leftovers) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

bool is_checkpoint(const fs::path& path) {
  std::error_code ignored;
  const fs::path place = path.has_filename() ? path : path.parent_path();
  if (!fs::is_directory(place, ignored)) return false;
  // A run may have the name of a checkpoint.
  return fs::exists(place / kManifestName, ignored) ||
         (iteration_of(place.filename().string()) && !fs::exists(place / "checkpoints", ignored));
}

std::vector<CheckpointPlace> find_checkpoints(const fs::path& path) {
  if (is_checkpoint(path)) {
    const fs::path place = path.has_filename() ? path : path.parent_path();
    return {{place, iteration_of(place.filename().string()).value_or(0)}};
  }
  std::error_code ignored;
  std::vector<CheckpointPlace> found = CheckpointFolder(path).list();
  if (found.empty()) found = CheckpointFolder(path / "checkpoints").list();
  std::reverse(found.begin(), found.end());
  return found;
}

fs::path existing_folder(const fs::path& path) {
  std::error_code ignored;
  fs::path above = fs::absolute(path, ignored);
  while (!fs::exists(above, ignored) && above.has_parent_path() && above != above.parent_path())
    above = above.parent_path();
  return above;
}

std::optional<double> free_bytes(const fs::path& path) {
  struct statvfs disk{};
  if (::statvfs(existing_folder(path).c_str(), &disk) != 0) return std::nullopt;
  return static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

void require_writable(const std::string& name, const fs::path& path) {
  const fs::path parent = existing_folder(path);
  std::error_code ignored;
  BEV_CHECK(fs::is_directory(parent, ignored), Data, "{}: {} is not a folder; choose another name",
            name, parent.string());
  BEV_CHECK(::access(parent.c_str(), W_OK | X_OK) == 0, Data, "{}: cannot write into {}: {}", name,
            parent.string(), std::strerror(errno));
}

void require_disk_space(const std::string& name, const fs::path& path, double bytes,
                        const char* what_takes) {
  const std::optional<double> free = free_bytes(path);
  BEV_CHECK(!free || *free >= bytes, Data, "{}: the disk has {} free, but {} {}", name,
            as_bytes(*free), what_takes, as_bytes(bytes));
}

FolderLock::FolderLock(const std::filesystem::path& folder, double patience_seconds) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  BEV_CHECK(!error, Data, "cannot make the folder {}: {}", folder.string(), error.message());
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) return;
  const double start = seconds_now();
  do {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (seconds_now() - start < patience_seconds);
  ::close(descriptor_);
  throw Error(
      ErrorKind::Data,
      format("another run saves its checkpoints into {}; two would remove each other's: wait "
             "for its end, or choose another checkpoint.save",
             folder.string()));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace bev
