#include "launch/supervisor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "launch/supervised_ranks.h"

namespace bev {

namespace {

using Note = std::function<void(const std::string&)>;

double seconds(std::chrono::milliseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

// While it lives, signals wait in a descriptor; a reader of our streams that goes away ends
// nothing.
class SignalQueue {
 public:
  SignalQueue() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGTSTP})
      sigaddset(&wanted, signal);
    ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
    descriptor_ = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    struct sigaction ignored{};
    ignored.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignored, &pipe_before_);
  }
  ~SignalQueue() {
    if (descriptor_ >= 0) ::close(descriptor_);
    ::sigaction(SIGPIPE, &pipe_before_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_; }
  const sigset_t& before() const { return before_; }
  // 0: none waits.
  int next() const {
    signalfd_siginfo signal{};
    return ::read(descriptor_, &signal, sizeof signal) == sizeof signal
               ? static_cast<int>(signal.ssi_signo)
               : 0;
  }

 private:
  int descriptor_ = -1;
  sigset_t before_{};
  struct sigaction pipe_before_{};
};

bool asks_for_the_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// One start of all ranks, until all have ended.
class Attempt {
 public:
  Attempt(const LaunchJob& job, int number, SignalQueue& signals, const Note& note)
      : job_(job), signals_(signals), note_(note), ranks_(job, number, signals.before()) {}

  void run() {
    while (!ranks_.all_ended()) {
      if (ranks_.wait(signals_.descriptor(), next_wait())) take_signals();
      ranks_.collect();
      after_failure();
    }
    ranks_.drain(std::chrono::seconds(2));
  }

  // The signal that people ended it with; 0: none.
  int asked_by() const { return asked_by_; }

  int exit_code() const {
    if (const auto culprit = ranks_.culprit()) return code_of(ranks_.end_of(*culprit).status);
    for (size_t i = 0; i < static_cast<size_t>(job_.local_size); ++i)
      if (const int code = code_of(ranks_.end_of(i).status); code != 0) return code;
    return 0;
  }

  std::string report() const {
    const auto culprit = ranks_.culprit();
    if (!culprit) return "";
    // A rank that lost another says so itself, and ends with this code.
    const bool follows = job_.is_own_program &&
                         code_of(ranks_.end_of(*culprit).status) == bev::exit_code(ErrorKind::Comm);
    std::string text =
        format("rank {} (process {}) {}: {}", static_cast<size_t>(job_.first_rank) + *culprit,
               ranks_.process_of(*culprit),
               follows ? "ended first, for a reason that its words give" : "failed first",
               words(*culprit));
    const std::vector<std::string> last = ranks_.last_words(*culprit);
    if (!last.empty()) text += "\n  its last lines on stderr:";
    for (const std::string& line : last) text += "\n    " + line;
    return text + others(*culprit);
  }

 private:
  std::string words(size_t rank) const {
    return end_in_words(ranks_.end_of(rank).status, job_.is_own_program);
  }

  // How the others ended, those that ended alike together.
  std::string others(size_t culprit) const {
    std::vector<std::pair<std::string, std::vector<size_t>>> groups;
    for (size_t i = 0; i < static_cast<size_t>(job_.local_size); ++i) {
      if (i == culprit) continue;
      const std::string end =
          words(i) + (ranks_.end_of(i).was_asked ? ", after this program had asked it to end" : "");
      auto same = std::find_if(groups.begin(), groups.end(),
                               [&](const auto& group) { return group.first == end; });
      if (same == groups.end()) same = groups.insert(groups.end(), {end, {}});
      same->second.push_back(static_cast<size_t>(job_.first_rank) + i);
    }
    std::string text;
    for (const auto& [end, who] : groups) {
      const bool is_long = who.size() > 16;
      const std::vector<size_t> shown(who.begin(), is_long ? who.begin() + 16 : who.end());
      text += format("\n  rank{} {}{}: {}", who.size() > 1 ? "s" : "", fmt::join(shown, ", "),
                     is_long ? format(" and {} more", who.size() - 16) : "", end);
    }
    return text;
  }

  // Milliseconds until something is due; -1: nothing is.
  int next_wait() const {
    if (!due_) return -1;
    return std::clamp(static_cast<int>((*due_ - seconds_now()) * 1000) + 1, 0, 60000);
  }

  void take_signals() {
    while (const int signal = signals_.next()) {
      if (signal == SIGCHLD) continue;
      if (signal == SIGTSTP) {
        ranks_.send(SIGTSTP, false);
        ::raise(SIGSTOP);
        ranks_.send(SIGCONT, false);
      } else if (!asks_for_the_end(signal)) {
        ranks_.send(signal, false);
      } else if (asked_by_ == 0) {
        asked_by_ = signal;
        asked_at_ = seconds_now();
        ranks_.send(signal, true);
      } else if (seconds_now() - asked_at_ >= seconds(job_.until_insisting)) {
        ranks_.send(SIGKILL, true);
      }
    }
  }

  void after_failure() {
    if (ranks_.all_ended() || !ranks_.one_failed() || stage_ == Stage::Killed) return;
    if (!due_) {
      due_ = seconds_now() + seconds(job_.until_asked);
    } else if (seconds_now() < *due_) {
      return;
    } else if (stage_ == Stage::Waiting) {
      note_(format("a rank has failed and others go on; they are asked to end"));
      ranks_.send(SIGTERM, true);
      stage_ = Stage::Asked;
      due_ = seconds_now() + seconds(job_.until_killed);
    } else {
      ranks_.send(SIGKILL, true);
      stage_ = Stage::Killed;
      due_.reset();
    }
  }

  enum class Stage : uint8_t { Waiting, Asked, Killed };

  const LaunchJob& job_;
  SignalQueue& signals_;
  const Note& note_;
  SupervisedRanks ranks_;
  Stage stage_ = Stage::Waiting;
  std::optional<double> due_;
  int asked_by_ = 0;
  double asked_at_ = 0;
};

// Waits; returns the signal that ended the wait early, 0 when none did.
int pause(SignalQueue& signals, std::chrono::milliseconds duration) {
  const double until = seconds_now() + seconds(duration);
  for (;;) {
    const double left = until - seconds_now();
    if (left <= 0) return 0;
    pollfd watched{.fd = signals.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&watched, 1, static_cast<int>(left * 1000) + 1);
    while (const int signal = signals.next())
      if (asks_for_the_end(signal)) return signal;
  }
}

bool is_wrong_command(int code) {
  return code == exit_code(ErrorKind::Usage) || code == 126 || code == 127;
}

std::string restart_words(const LaunchJob& job, int attempt, int code) {
  if (job.max_restarts == 0) return "";
  if (is_wrong_command(code)) return "\n  not started again: the command itself is wrong";
  return attempt < job.max_restarts
             ? format("\n  all start again: restart {} of {}", attempt + 1, job.max_restarts)
             : format("\n  not started again: that was restart {} of {}", attempt,
                      job.max_restarts);
}

}  // namespace

int supervise(const LaunchJob& job, const Note& note) {
  BEV_CHECK(job.outputs.size() == static_cast<size_t>(job.local_size), Internal,
            "{} outputs for {} ranks", job.outputs.size(), job.local_size);
  SignalQueue signals;
  std::chrono::milliseconds backoff = job.first_backoff;
  for (int number = 0;; ++number) {
    Attempt attempt(job, number, signals, note);
    attempt.run();
    const int code = attempt.exit_code();
    if (code == 0 || attempt.asked_by() != 0) {
      if (code != 0) note(format("ended by SIG{}", ::sigabbrev_np(attempt.asked_by())));
      return code;
    }
    note(attempt.report() + restart_words(job, number, code));
    if (number >= job.max_restarts || is_wrong_command(code)) return code;
    if (const int signal = pause(signals, backoff)) return 128 + signal;
    backoff = std::min(backoff * 2, job.longest_backoff);
  }
}

int free_port() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BEV_CHECK(descriptor >= 0, Comm, "cannot make a socket: {}", std::strerror(errno));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound =
      ::bind(descriptor, generic, size) == 0 && ::getsockname(descriptor, generic, &size) == 0;
  const int error = errno;
  ::close(descriptor);
  BEV_CHECK(is_bound, Comm, "this machine gives no free port: {}", std::strerror(error));
  return ntohs(address.sin_port);
}

}  // namespace bev
