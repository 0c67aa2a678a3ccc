// bevatron launch: several processes of this program, or another, on this machine.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>

#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "app/launch/launch_flags.h"
#include "app/launch/launched_training.h"
#include "base/check.h"
#include "launch/cpu_binding.h"
#include "launch/elastic_supervisor.h"
#include "launch/job_secret.h"
#include "launch/supervisor.h"
#include "ops/make_device.h"

namespace bev::app {

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
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

int count_processes(const LaunchRequest& request) {
  if (request.kind == ProcessKind::Number) return request.processes;
  const int gpus = request.kind == ProcessKind::Cpu ? 0 : count_gpus();
  BEV_CHECK(gpus > 0 || request.kind != ProcessKind::Gpu, Usage,
            "--nproc-per-node gpu, but there is no GPU; `bevatron doctor` says why; legal is a "
            "number, cpu or auto");
  return gpus > 0 ? gpus : numa_nodes_in_use(read_topology(), allowed_cpus());
}

// A verb is this program; what has a slash in it is another.
std::vector<std::string> full_command(const LaunchRequest& request) {
  std::vector<std::string> command = request.command;
  if (command[0].find('/') != std::string::npos) return command;
  BEV_CHECK(
      !command[0].ends_with(".py"), Usage,
      "{} is a script of Python; where torchrun runs pretrain_gpt.py, bevatron launch runs the "
      "verb train with the same arguments",
      command[0].substr(0, 200));
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
  say("bevatron launch: logs go to {}\n", pattern);
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
  job.is_own_program = job.command.size() > request.command.size();
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
MachineChoice choose_machines(const LaunchJob& job, int least, const std::vector<int>& processes) {
  MachineChoice none;
  for (auto count = static_cast<int>(processes.size()); count >= least; --count) {
    std::string why;
    const int ranks = std::accumulate(processes.begin(), processes.begin() + count, 0);
    if (const auto training = ask_for_training(job.command, ranks, job.local_size, why))
      return {.machines = count,
              .data_ranks = training->data_ranks,
              .progress = progress_of(*training, true)};
    if (why.empty()) return {.machines = count};
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
                                  return choose_machines(job, request.least_nodes, processes);
                                }},
                           note);
}

}  // namespace

int launch(std::span<const std::string> args) {
  const auto request = launch_request(args, ::getenv);
  if (!request) return 0;
  for (const std::string& note : request->notes) say("bevatron launch: note: {}\n", note);
  LaunchJob job = make_job(*request);
  const LaunchNote note = [](const std::string& text) { say("bevatron launch: {}\n", text); };
  if (request->is_elastic()) return launch_elastic(*request, job, note);
  if (job.max_restarts > 0) job.progress = progress_of_command(job);
  return supervise(job, note);
}

}  // namespace bev::app
