#include "app/launch/launched_rank.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "app/cli/build_info.h"
#include "app/cli/console.h"
#include "base/check.h"
#include "comm/nccl_world.h"
#include "launch/process_world.h"
#include "launch/rank_binding.h"
#include "launch/rank_consistency.h"
#include "net/address.h"
#include "ops/make_device.h"

namespace bev::app {

namespace {

// Another rank has failed. The thread that trains may be stuck in an exchange with it, so the
// process ends here; what it was writing is written beside the old file and does no harm.
[[noreturn]] void leave_after(const Failure& failure, int rank, const Console& console) {
  const std::string text =
      format("bevatron: error: rank {}: {}\n  ({} error, exit code {})\n", rank, failure.text(),
             name_of(ErrorKind::Comm), exit_code(ErrorKind::Comm));
  print_stderr("{}", text);
  console.log_to_file(text);
  ::_exit(exit_code(ErrorKind::Comm));
}

ProcessWorld::Options options_for(const Config& config, const Console& console, int rank) {
  return {.parallel = config.parallel,
          .note =
              [&console, rank](const std::string& text) {
                console.log("bevatron: note: rank {}: {}\n", rank, text);
              },
          // Whichever ranks print.
          .note_of_first =
              [&console, rank](const std::string& text) {
                const std::string line = format("bevatron: note: rank {}: {}\n", rank, text);
                print_stderr("{}", line);
                console.log_to_file(line);
              },
          .on_failure = [&console,
                         rank](const Failure& failure) { leave_after(failure, rank, console); }};
}

// Each argument with a zero behind it; empty where the system does not tell.
std::string command_line_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/cmdline", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Whether the process that started this one has these arguments at the end of its own: then all
// that it starts have them. The exception is mpirun with several programs, between which is a
// colon.
bool launcher_has_own_arguments() {
  using namespace std::string_literals;
  const std::string own = command_line_of("self");
  const std::string launcher = command_line_of(std::to_string(::getppid()));
  const size_t program = own.find('\0');
  return program != std::string::npos && launcher.ends_with(own.substr(program)) &&
         launcher.find("\0:\0"s) == std::string::npos;
}

// mpirun and torchrun end all processes as soon as one has ended, and the one that speaks may need
// a moment more than those that do not.
void await_first_words() {
  std::error_code unknown;
  const auto launcher = std::filesystem::read_symlink(format("/proc/{}/exe", ::getppid()), unknown);
  if (launcher == std::filesystem::read_symlink("/proc/self/exe", unknown)) return;
  std::this_thread::sleep_for(std::chrono::seconds(2));
}

// "there is no flag --a; the training length is missing": of a text that explains each problem
// below a line with its number, those lines; else the first line.
std::string headlines(const std::string& text) {
  std::istringstream rest(text);
  std::string first, numbered;
  for (std::string line; std::getline(rest, line);) {
    if (first.empty()) first = line;
    const size_t digits = line.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string::npos || line.compare(digits, 2, ". ") != 0) continue;
    numbered += (numbered.empty() ? "" : "; ") + line.substr(digits + 2);
  }
  return numbered.empty() ? first : numbered;
}

}  // namespace

int report_once(const RankEnvironment& environment, const Error& error) {
  const bool all_have_it = launcher_has_own_arguments();
  if (environment.rank == 0 || (all_have_it && environment.local_rank == 0)) throw Error(error);
  if (all_have_it) {
    await_first_words();
  } else {
    print_stderr("bevatron: error: rank {}: {} ({} error, exit code {})\n", environment.rank,
                 headlines(error.what()), name_of(error.kind), exit_code(error.kind));
  }
  return exit_code(error.kind);
}

std::optional<RankEnvironment> own_environment() {
  auto environment = rank_environment([](const char* name) { return std::getenv(name); });
  if (!environment) return environment;
  assign_gpu(*environment);
  if (environment->local_size <= environment->local_gpus) widen_gpu_queues();
  return environment;
}

RankEnvironment single_rank_environment() {
  RankEnvironment environment;
  environment.by = LaunchedBy::Variables;
  environment.master_host = "127.0.0.1";
  environment.words = "itself";
  assign_gpu(environment);
  return environment;
}

LaunchedRank::LaunchedRank(const RankEnvironment& environment, const Config& config,
                           const Console& console)
    : local_size_(environment.local_size),
      local_gpus_(environment.local_gpus),
      world_(environment, options_for(config, console, environment.rank)) {
  bind(config.device.kind == DeviceKind::Cuda ? environment.gpu_node : std::nullopt);
  const std::string& interface = config.parallel.interface;
  if (config.device.kind == DeviceKind::Cuda && !interface.empty())
    choose_nccl_interface(interface_name(interface));
}

void LaunchedRank::bind(std::optional<int> gpu_node) {
  const std::vector<std::string> all =
      control().all_gather(binding_offer(allowed_cpus(), gpu_node));
  std::vector<std::string> here;
  int local_rank = 0;
  for (int each = 0; each < size(); ++each) {
    if (control().place(each).host != control().place(rank()).host) continue;
    if (each < rank()) ++local_rank;
    here.push_back(all[static_cast<size_t>(each)]);
  }
  const Binding binding =
      bind_rank(rank(), local_rank, here, [](const char* name) { return std::getenv(name); });
  binding_ = binding.words;
  const auto same = std::count(here.begin(), here.end(), here[static_cast<size_t>(local_rank)]);
  sharing_cpus_ = binding.cpus.empty() ? static_cast<int>(same) : 1;
}

int LaunchedRank::threads(int64_t asked) const {
  if (asked > 0) return static_cast<int>(asked);
  return std::max(1, usable_threads() / sharing_cpus_);
}

int LaunchedRank::sharing_memory(DeviceKind kind) const {
  if (kind != DeviceKind::Cuda) return local_size_;
  const int gpus = std::max(1, local_gpus_);
  return (local_size_ + gpus - 1) / gpus;
}

void LaunchedRank::require_same_on_ranks(const std::string& what, const std::string& here) {
  try {
    bev::require_same_on_ranks(control(), what, here);
  } catch (const Error& error) {
    is_agreed_ = error.kind == ErrorKind::Usage;
    if (!is_agreed_ || rank() == 0) throw;
    throw Error(error.kind, format("{} is not the same on all ranks: rank 0 says how", what));
  }
}

void LaunchedRank::require_all_well(FunctionRef<void()> look) {
  std::optional<Error> own;
  try {
    look();
  } catch (const Error& error) {
    own = error;
  }
  const std::vector<std::string> found =
      control().all_gather(own ? std::string(1, static_cast<char>(own->kind)) : "");
  const auto first = std::find_if(found.begin(), found.end(),
                                  [](const std::string& kind) { return !kind.empty(); });
  if (first == found.end()) return;
  is_agreed_ = true;
  const auto culprit = static_cast<int>(first - found.begin());
  if (culprit == rank()) throw Error(*own);
  throw Error(static_cast<ErrorKind>(first->front()),
              format("rank {} of {} (host {}) says what is wrong", culprit, size(),
                     control().place(culprit).host));
}

void LaunchedRank::run(FunctionRef<void()> work) {
  const ErrorContext context(
      format("running as rank {} of {} on {}", rank(), size(), control().place(rank()).host));
  try {
    require_same_on_ranks("the program",
                          format("version {}\nbuild {}\n", program_version(), build_id()));
    work();
    world_.finish();
  } catch (const std::exception& error) {
    if (is_agreed_) {
      world_.finish();
    } else {
      control().abort(error.what());
    }
    throw;
  }
}

}  // namespace bev::app
