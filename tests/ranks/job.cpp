#include "ranks/job.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <vector>

#include "base/error.h"

namespace bev::test {

namespace {

constexpr const char* kHost = "127.0.0.1";

int run(int rank, int size, int port, std::optional<ListenPort> listener, CommBackend engine,
        const Body& body) {
  const auto say = [rank](const std::string& text) {
    std::fprintf(stderr, "rank %d: %s\n", rank, text.c_str());
  };
  // Outlives the error: what this rank has to say comes before the others learn that it is gone.
  Rank self;
  try {
    CoordinationClient::Options options;
    options.rank = rank;
    options.size = size;
    options.host = kHost;
    options.port = port;
    options.listener = std::move(listener);
    options.secret = "a test";
    options.own_host = "here";
    options.join_limit = options.limit = std::chrono::seconds(60);
    options.log = say;
    options.on_failure = [say](const Failure& failure) {
      say(failure.text());
      ::_exit(1);
    };
    self.control = std::make_unique<CoordinationClient>(std::move(options));
    self.engine = load_host_engine(engine, {.rank = rank,
                                            .size = size,
                                            .store = self.control.get(),
                                            .address = kHost,
                                            .timeout_seconds = 60});
    body(self);
    self.control->finish();
    std::fflush(stdout);
    return 0;
  } catch (const std::exception& e) {
    say(e.what());
    // Destroying MPI would wait for the others.
    ::_exit(1);
  }
}

}  // namespace

int run_under_mpirun(CommBackend engine, const Body& body) {
  const MpiPlace place = mpi_place();
  std::optional<ListenPort> listener;
  if (place.rank == 0) listener.emplace(kHost, 0);
  const std::string port =
      mpi_broadcast(listener.has_value() ? std::to_string(listener->port()) : "");
  return run(place.rank, place.size, std::stoi(port), std::move(listener), engine, body);
}

int run_forked(int size, CommBackend engine, const Body& body) {
  ListenPort port(kHost, 0);
  const int number = port.port();
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::optional<ListenPort> listener;
      if (rank == 0) {
        listener.emplace(std::move(port));
      } else {
        ::close(port.release());
      }
      ::_exit(run(rank, size, number, std::move(listener), engine, body));
    }
    children.push_back(child);
  }
  ::close(port.release());
  int result = 0;
  for (size_t left = children.size(); left > 0; --left) {
    int status = 0;
    const pid_t ended = ::wait(&status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (result == 0) {
      std::fprintf(stderr, "process %d ended with status %d\n", static_cast<int>(ended), status);
      for (const pid_t child : children) {
        if (child != ended) ::kill(child, SIGKILL);
      }
    }
    result = 1;
  }
  return result;
}

}  // namespace bev::test
