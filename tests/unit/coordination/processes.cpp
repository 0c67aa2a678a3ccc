#include "unit/coordination/processes.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <exception>

#include "base/check.h"

namespace bev::test {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{20};

void write_line(int pipe, const std::string& text) {
  const std::string line = text + "\n";  // short enough to be written whole
  (void)!::write(pipe, line.data(), line.size());
}

int run_rank(CoordinationClient::Options options, int pipe,
             const std::function<void(CoordinationClient&, const Processes::Say&)>& body) {
  const std::string name = format("rank {}", options.rank);
  const Processes::Say say = [&](const std::string& text) { write_line(pipe, text); };
  options.log = [&](const std::string& text) { say(format("{} notes: {}", name, text)); };
  options.on_failure = [&](const Failure& failure) {
    say(format("{} learns: {}", name, failure.text()));
    ::_exit(5);
  };
  try {
    CoordinationClient control(std::move(options));
    body(control, say);
  } catch (const std::exception& error) {
    say(format("{} throws: {}", name, error.what()));
    return 1;
  }
  say(format("{} ended", name));
  return 0;
}

}  // namespace

Processes::Processes(int size, const Limits& limits,
                     const std::function<void(CoordinationClient& control, const Say& say)>& body) {
  std::array<int, 2> ends{};
  BEV_CHECK(::pipe(ends.data()) == 0, Internal, "no pipe");
  pipe_ = ends[0];
  ListenPort listener("127.0.0.1", 0);
  const int port = listener.port();
  for (int rank = 0; rank < size; ++rank) {
    const pid_t pid = ::fork();
    BEV_CHECK(pid >= 0, Internal, "no process");
    if (pid == 0) {
      ::close(ends[0]);
      CoordinationClient::Options o;
      if (rank == 0) {
        o.listener = std::move(listener);
      } else {
        ::close(listener.release());
      }
      o.rank = rank;
      o.size = size;
      o.host = "127.0.0.1";
      o.port = port;
      o.secret = "the secret of the test";
      o.own_host = format("host-{}", rank);
      o.join_limit = milliseconds(20000);
      o.heartbeat = milliseconds(limits.heartbeat);
      o.heartbeat_timeout = milliseconds(limits.silence);
      o.limit = milliseconds(limits.limit);
      ::_exit(run_rank(std::move(o), ends[1], body));
    }
    pids_.push_back(pid);
  }
  ::close(ends[1]);
}

Processes::~Processes() {
  for (const pid_t pid : pids_) {
    if (pid <= 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::close(pipe_);
}

void Processes::read_some(int limit_ms) {
  pollfd entry{.fd = pipe_, .events = POLLIN, .revents = 0};
  if (::poll(&entry, 1, limit_ms) <= 0) return;
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(pipe_, buffer.data(), buffer.size());
  if (got > 0) heard_.append(buffer.data(), static_cast<size_t>(got));
}

bool Processes::hear(const std::string& part, int times) {
  const auto end = steady_clock::now() + kPatience;
  for (;;) {
    int found = 0;
    for (size_t at = heard_.find(part); at != std::string::npos; at = heard_.find(part, at + 1))
      ++found;
    if (found >= times) return true;
    if (steady_clock::now() > end) return false;
    read_some(20);
  }
}

std::vector<int> Processes::wait() {
  std::vector<int> codes(pids_.size(), -1);
  const auto end = steady_clock::now() + kPatience;
  for (size_t left = pids_.size(); left > 0 && steady_clock::now() < end;) {
    for (size_t rank = 0; rank < pids_.size(); ++rank) {
      int status = 0;
      if (pids_[rank] <= 0 || ::waitpid(pids_[rank], &status, WNOHANG) != pids_[rank]) continue;
      codes[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      pids_[rank] = 0;
      --left;
    }
    read_some(10);
  }
  for (size_t before = heard_.size() + 1; before != heard_.size();) {
    before = heard_.size();
    read_some(0);
  }
  return codes;
}

}  // namespace bev::test
