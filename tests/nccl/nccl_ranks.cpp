// Ranks as processes that exchange tensors by NCCL, tried on this machine.
//
//   nccl_ranks [N] [--kill R]    N processes (2), which share the first GPU
//
// Prints a line for each check that has held, and times. With --kill, rank R is killed while all
// sum; the others must end with code 5 and name it. Ends with 0, or 77 where there is no GPU.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "comm/nccl_world.h"
#include "coordination/coordination_client.h"
#include "nccl/rank_checks.h"
#include "ops/make_device.h"

namespace bev::test {
namespace {

constexpr int kSkipped = 77;
constexpr int kNobody = -1;
constexpr unsigned kLimitSeconds = 300;  // then a process that hangs is ended by its alarm
constexpr int kTurnOfDeath = 20;

struct Job {
  int size = 2;
  int killed = kNobody;
  std::string secret{};
};

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Each process passes for a machine of its own, as NCCL has one rank per GPU of a machine.
void pose_as_machine(int rank) {
  ::setenv("NCCL_HOSTID", format("rank-{}", rank).c_str(), 1);
  ::setenv("NCCL_NET", "Socket", 0);
  choose_nccl_interface("lo");
}

CoordinationClient::Options options_of(const Job& job, int rank, ListenPort port) {
  CoordinationClient::Options options;
  options.rank = rank;
  options.size = job.size;
  options.host = "127.0.0.1";
  options.port = port.port();
  if (rank == 0) {
    options.listener = std::move(port);
  } else {
    ::close(port.release());
  }
  options.secret = job.secret;
  options.job = "nccl_ranks";
  options.own_host = "here";
  options.join_limit = std::chrono::seconds(60);
  options.limit = std::chrono::seconds(120);
  options.log = [rank](const std::string& line) { say(format("rank {}: {}", rank, line)); };
  options.on_failure = [rank, killed = job.killed](const Failure& failure) {
    say(format("rank {}: {}", rank, failure.text()));
    const bool is_right = killed != kNobody && failure.who.rank == killed;
    ::_exit(killed == kNobody || is_right ? exit_code(ErrorKind::Comm) : 1);
  };
  return options;
}

void be_rank(const Job& job, int rank, ListenPort port) {
  const auto tell = [&](const std::string& line) {
    if (rank == 0) say(line);
  };
  pose_as_machine(rank);
  CoordinationClient control(options_of(job, rank, std::move(port)));
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cuda, 0);
  const Stopwatch start;
  std::string words;
  std::unique_ptr<Communicator> world = make_nccl_world(*device, control, words);
  tell(format("{}; made in {}", words, as_duration(start.seconds())));
  const Stopwatch first;
  seconds_of_all_reduce(*device, *world, 4);
  tell(format("the first communicator and 6 sums in it: {}", as_duration(first.seconds())));
  if (job.killed != kNobody) {
    sum_for_ever(*device, *world, [&](int turn) {
      if (turn == kTurnOfDeath && rank == job.killed) ::kill(::getpid(), SIGKILL);
    });
  }
  std::vector<int> backwards;
  for (int each = job.size - 1; each >= 0; --each) backwards.push_back(each);
  const Stopwatch another;
  seconds_of_all_reduce(*device, *world->split(backwards), 4);
  tell(format("a further one: {}", as_duration(another.seconds())));
  const Stopwatch pipes;
  world->connect_neighbours();
  tell(format("pipes opened in {}", as_duration(pipes.seconds())));
  check_world(*device, *world, [&](const std::string& what) { tell("ok: " + what); });
  constexpr size_t kLarge = size_t{64} << 20;
  tell(format("all_reduce of 64 MiB: {:.2f} ms",
              1e3 * seconds_of_all_reduce(*device, *world, kLarge)));
  const Stopwatch end;
  world.reset();
  tell(format("all communicators ended in {}", as_duration(end.seconds())));
  control.finish();
}

[[noreturn]] void run_child(const Job& job, int rank, ListenPort port) {
  ::alarm(kLimitSeconds);
  int code = 0;
  try {
    be_rank(job, rank, std::move(port));
  } catch (const Error& error) {
    say(format("rank {}: {}: {}", rank, name_of(error.kind), error.what()));
    code = exit_code(error.kind);
  } catch (const std::exception& error) {
    say(format("rank {}: {}", rank, error.what()));
    code = 1;
  }
  std::fflush(stdout);
  ::_exit(code);
}

// Asked in a process of its own: CUDA does not survive a fork.
std::string why_skipped() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string why = why_no_cuda();
    if (why.empty()) why = why_no_nccl();
    const bool is_told = ::write(ends[1], why.data(), why.size()) >= 0;
    ::_exit(is_told ? 0 : 1);
  }
  ::close(ends[1]);
  std::string why;
  char text[512];
  for (ssize_t count; (count = ::read(ends[0], text, sizeof text)) > 0;)
    why.append(text, static_cast<size_t>(count));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return why;
}

std::string end_of(int status) {
  return WIFSIGNALED(status) ? format("ended by signal {}", WTERMSIG(status))
                             : format("ended with {}", WEXITSTATUS(status));
}

bool is_as_wanted(const Job& job, int rank, int status) {
  if (job.killed == kNobody) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (rank == job.killed) return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return WIFEXITED(status) && WEXITSTATUS(status) == exit_code(ErrorKind::Comm);
}

std::optional<Job> job_of(int argc, char** argv) {
  Job job;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--kill" && i + 1 < argc) {
      job.killed = std::atoi(argv[++i]);
      if (job.killed < 0) return std::nullopt;
    } else {
      job.size = std::atoi(argv[i]);
    }
  }
  std::random_device random;
  for (int i = 0; i < 4; ++i) job.secret += format("{:08x}", random());
  if (job.size < 1 || job.size > 64 || job.killed >= job.size) return std::nullopt;
  return job;
}

int run(const Job& job) {
  const std::string why = why_skipped();
  if (!why.empty()) {
    say("skipped: " + why);
    return kSkipped;
  }
  std::vector<pid_t> children;
  {
    ListenPort port("127.0.0.1", 0);
    for (int rank = 0; rank < job.size; ++rank) {
      const pid_t child = ::fork();
      if (child == 0) run_child(job, rank, std::move(port));
      children.push_back(child);
    }
    ::close(port.release());
  }
  bool all_well = true;
  for (int rank = 0; rank < job.size; ++rank) {
    int status = 0;
    ::waitpid(children[static_cast<size_t>(rank)], &status, 0);
    const bool is_well = is_as_wanted(job, rank, status);
    all_well = all_well && is_well;
    if (!is_well || job.killed != kNobody)
      say(format("rank {} {}{}", rank, end_of(status), is_well ? "" : ", which is wrong"));
  }
  say(all_well ? "all well" : "FAILED");
  return all_well ? 0 : 1;
}

}  // namespace
}  // namespace bev::test

int main(int argc, char** argv) {
  const std::optional<bev::test::Job> job = bev::test::job_of(argc, argv);
  if (!job) {
    std::fprintf(stderr, "usage: nccl_ranks [N] [--kill R], 1 <= N <= 64, 0 <= R < N\n");
    return 2;
  }
  return bev::test::run(*job);
}
