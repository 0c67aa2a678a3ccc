#include "app/launch/launched_training.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/checkpoint_survey.h"
#include "config/parse/toml.h"
#include "launch/inherited_variables.h"
#include "launch/rank_process.h"
#include "net/socket.h"
#include "parallel/parallel_layout.h"
#include "train/resume.h"
#include "train/run_directory.h"

namespace bev::app {

namespace {

// Whoever needs longer to read a configuration is not waited for.
constexpr double kPatienceSeconds = 60;

std::string text_in(const Socket& file) {
  return read_text(format("/proc/self/fd/{}", file.get()), size_t{4} << 20);
}

// The exit code; -1 where it did not end in time, or by a signal.
int await(pid_t process) {
  const double until = seconds_now() + kPatienceSeconds;
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended == process) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (seconds_now() >= until) break;
    ::poll(nullptr, 0, 2);
  }
  ::kill(-process, SIGKILL);
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
  return -1;
}

std::optional<Config> config_in(const std::string& text) {
  Findings findings;
  Config config;
  for (const Assignment& a : parse_toml(text, "the configuration of the command", findings))
    set_value(config, a.field->path, a.value);
  return findings.problems.empty() ? std::optional(config) : std::nullopt;
}

}  // namespace

std::optional<LaunchedTraining> ask_for_training(const std::vector<std::string>& command, int ranks,
                                                 int local_ranks, std::string& why) {
  const bool is_training = command.size() > 1 && command[1] == "train" &&
                           command[0] == std::filesystem::read_symlink("/proc/self/exe").string();
  if (!is_training) return std::nullopt;
  const Socket out(::memfd_create("out", MFD_CLOEXEC)), err(::memfd_create("err", MFD_CLOEXEC));
  if (!out.is_open() || !err.is_open()) return std::nullopt;
  ProcessStart start{.command = command,
                     .environment = inherited_variables(),
                     .out = out.get(),
                     .err = err.get(),
                     .signals = {}};
  start.command.insert(start.command.begin() + 2, "--print-config");
  start.environment.insert(
      start.environment.end(),
      {"RANK=0", "LOCAL_RANK=0", format("WORLD_SIZE={}", ranks),
       format("LOCAL_WORLD_SIZE={}", local_ranks), "MASTER_ADDR=127.0.0.1", "BEVATRON_RESTART=0"});
  sigemptyset(&start.signals);
  if (await(start_process(start)) != 0) {
    why = text_in(err);
    return std::nullopt;
  }
  const std::optional<Config> config = config_in(text_in(out));
  if (!config) return std::nullopt;
  LaunchedTraining training;
  training.checkpoints = save_folder(*config).string();
  if (!config->train.output.empty())
    training.logs = RunDirectory(config->train.output).rank_log(0).parent_path().string();
  training.data_ranks = layout_of(*config).data;
  return training;
}

ProgressWatch progress_of(const LaunchedTraining& training, bool is_first_machine) {
  if (training.checkpoints.empty()) return {};
  const auto newest = [folder = training.checkpoints,
                       is_first_machine]() -> std::optional<int64_t> {
    std::error_code error;
    if (!is_first_machine && !std::filesystem::is_directory(folder, error)) return std::nullopt;
    if (CheckpointFolder(folder).list().empty()) return 0;
    try {
      return newest_good(folder).iteration;
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  return {.newest = newest, .folder = training.checkpoints, .logs = training.logs};
}

}  // namespace bev::app
