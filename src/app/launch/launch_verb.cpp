// bevatron launch: several processes of this program, or another, on this machine.
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/verbs.h"
#include "app/launch/launch_flags.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/checkpoint_survey.h"
#include "config/megatron/megatron_scripts.h"
#include "config/parse/toml.h"
#include "launch/elastic_supervisor.h"
#include "launch/job_secret.h"
#include "launch/launch_job.h"
#include "launch/rank_binding.h"
#include "launch/rank_environment.h"
#include "launch/rank_process.h"
#include "launch/supervisor.h"
#include "net/socket.h"
#include "ops/make_device.h"
#include "parallel/parallel_layout.h"
#include "train/run_checkpoints.h"
#include "train/run_directory.h"

namespace bev::app {

// What a launcher has to know of the training that it starts.

// A training of this program with a number of ranks.
struct LaunchedTraining {
  std::string checkpoints{};  // the folder; empty: none are wanted
  std::string logs{};         // of the ranks; empty: there are none
  int data_ranks = 1;         // ranks that share each batch
};

// The training that a command stands for: asks the program itself, in a process of its own, for the
// configuration of the first of `ranks` ranks. Nothing where it is another verb or another program,
// or where its configuration is not legal for so many; `why` then has the words of the program, if
// it said any.
std::optional<LaunchedTraining> ask_for_training(const std::vector<std::string>& command, int ranks,
                                                 int local_ranks, std::string& why);

// How far a training has come, by its checkpoints. Nothing is known where the folder is not there
// on a machine that does not write it.
ProgressWatch progress_of(const LaunchedTraining& training, bool is_first_node);

namespace {

// Asked in a process of its own: whoever asks CUDA has memory on every GPU until it ends.
int count_gpus() {
  std::fflush(nullptr);
  const pid_t process = ::fork();
  BEV_CHECK(process >= 0, Device, "cannot start a process: {}", std::strerror(errno));
  if (process == 0) {
    const size_t count = cuda_facts(cuda::Depth::Gpus).gpus.size();
    ::_exit(static_cast<int>(std::min<size_t>(count, 255)));
  }
  const int status = await_end(process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

int count_processes(const LaunchRequest& request) {
  if (request.kind == ProcessKind::Number) return request.processes;
  const int gpus = request.kind == ProcessKind::Cpu ? 0 : count_gpus();
  BEV_CHECK(gpus > 0 || request.kind != ProcessKind::Gpu, Usage,
            "--nproc-per-node gpu, but there is no GPU; `bevatron doctor` says why; legal is a "
            "number, cpu or auto");
  return gpus > 0 ? gpus
                  : static_cast<int>(numa_nodes_in_use(read_topology(), allowed_cpus()).size());
}

// A verb is this program, and so is a script of Megatron-LM; what else has a slash in it is another
// program.
std::vector<std::string> full_command(const LaunchRequest& request) {
  const size_t words = script_prefix(request.command).words;
  const bool names_script =
      words < request.command.size() && find_megatron_script(request.command[words]) != nullptr;
  if (!names_script && request.command[0].find('/') != std::string::npos) return request.command;
  std::vector<std::string> command = as_own_command(request.command);
  BEV_CHECK(command[0] != "launch", Usage,
            "bevatron launch starts the processes, and {0} would start others from each\n"
            "leave out {0}, and give its flags to bevatron launch",
            request.command[0].substr(0, 200));
  command.insert(command.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
  return command;
}

// Redirected streams need a folder, as they have with torchrun.
std::filesystem::path log_folder(const LaunchRequest& request,
                                 const std::vector<RankOutput>& outputs) {
  const bool is_needed = std::any_of(outputs.begin(), outputs.end(), [](const RankOutput& output) {
    return (output.redirect & ~output.tee) != 0;
  });
  if (!request.log_folder.empty() || !is_needed) return request.log_folder;
  std::string pattern = (std::filesystem::temp_directory_path() / "bevatron-logs-XXXXXX").string();
  BEV_CHECK(::mkdtemp(pattern.data()) != nullptr, Data, "cannot make the folder {} for logs: {}",
            pattern, std::strerror(errno));
  print_stderr("bevatron launch: logs go to {}\n", pattern);
  return pattern;
}

std::string secret_for(const LaunchRequest& request) {
  const bool is_given = std::getenv("BEVATRON_SECRET") != nullptr;
  return request.nodes == 1 && !is_given ? random_secret() : job_secret(::getenv);
}

LaunchJob make_job(const LaunchRequest& request) {
  LaunchJob job;
  job.local_size = count_processes(request);
  const auto count = static_cast<size_t>(job.local_size);
  const std::vector<int> tee = streams_by_rank(request.tee, "--tee", job.local_size);
  const std::vector<int> redirects =
      streams_by_rank(request.redirects, "--redirects", job.local_size);
  for (size_t rank = 0; rank < count; ++rank)
    job.outputs.push_back({.redirect = redirects[rank], .tee = tee[rank]});
  job.command = full_command(request);
  job.is_own_program = job.command != request.command;
  job.node = request.node;
  job.first_rank = request.node * job.local_size;
  job.size = request.nodes * job.local_size;
  job.master_host = request.master_host;
  job.master_port = request.master_port;
  job.secret = secret_for(request);
  job.job = request.job;
  job.max_restarts = request.max_restarts;
  job.max_idle_restarts = request.max_idle_restarts;
  job.log_folder = log_folder(request, job.outputs);
  return job;
}

// Quietly: what is wrong with the command, its ranks will say.
ProgressWatch progress_of_command(const LaunchJob& job) {
  std::string unsaid;
  const auto training = ask_for_training(job.command, job.size, job.local_size, unsaid);
  return training ? progress_of(*training, job.node == 0) : ProgressWatch{};
}

// As many of the first machines as the configuration allows; programs that are not ours can do with
// any number.
NodeChoice choose_nodes(const LaunchJob& job, int least, const std::vector<int>& processes) {
  NodeChoice none;
  for (auto count = static_cast<int>(processes.size()); count >= least; --count) {
    std::string why;
    const int ranks = std::accumulate(processes.begin(), processes.begin() + count, 0);
    if (const auto training = ask_for_training(job.command, ranks, job.local_size, why))
      return {.nodes = count,
              .data_ranks = training->data_ranks,
              .progress = progress_of(*training, true)};
    if (why.empty()) return {.nodes = count};
    if (none.why.empty()) none.why = why;
  }
  return none;
}

int launch_elastic(const LaunchRequest& request, const LaunchJob& job, const LaunchNote& note) {
  return supervise_elastic(job,
                           {.least = request.least_nodes,
                            .most = request.nodes,
                            .number = request.node,
                            .last_call = request.last_call,
                            .join_timeout = request.join_timeout,
                            .choose =
                                [&](const std::vector<int>& processes) {
                                  return choose_nodes(job, request.least_nodes, processes);
                                }},
                           note);
}

// Dry run of train for the ranks of the job.
int check_training(const LaunchRequest& request) {
  const std::vector<std::string> command = full_command(request);
  const int local_ranks = count_processes(request);
  return train_dry_run(std::span(command).subspan(2), request.nodes * local_ranks, local_ranks);
}

}  // namespace

int launch(std::span<const std::string> args) {
  const auto request = launch_request(args, ::getenv);
  if (!request) return 0;
  if (request->only_checks()) return check_training(*request);
  for (const std::string& note : request->notes) print_stderr("bevatron launch: note: {}\n", note);
  LaunchJob job = make_job(*request);
  const LaunchNote note = [](const std::string& text) {
    print_stderr("bevatron launch: {}\n", text);
  };
  if (request->is_elastic()) return launch_elastic(*request, job, note);
  if (job.max_restarts > 0) job.progress = progress_of_command(job);
  return supervise(job, note);
}

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
  await_end(process);
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

ProgressWatch progress_of(const LaunchedTraining& training, bool is_first_node) {
  if (training.checkpoints.empty()) return {};
  const auto newest = [folder = training.checkpoints, is_first_node]() -> std::optional<int64_t> {
    std::error_code error;
    if (!is_first_node && !std::filesystem::is_directory(folder, error)) return std::nullopt;
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
