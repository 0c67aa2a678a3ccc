#include "launch/supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "coordination/rank_text.h"
#include "launch/restart_policy.h"
#include "net/socket.h"

namespace bev {

namespace {

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// SIGKILL is not among them: the system sends it where memory runs out.
bool is_signal_of_people(int status) {
  return WIFSIGNALED(status) && (asks_for_the_end(WTERMSIG(status)) || WTERMSIG(status) == SIGQUIT);
}

}  // namespace

Attempt::Attempt(const LaunchJob& job, int number, SignalQueue& signals, LaunchNote note,
                 PollSource* side)
    : job_(job),
      signals_(signals),
      note_(std::move(note)),
      side_(side),
      ranks_(job, number, signals.before()),
      started_(seconds_now()) {}

AttemptEnd Attempt::run() {
  while (!ranks_.all_ended()) {
    ranks_.wait(signals_.descriptor(), side_ == nullptr ? -1 : side_->descriptor(), next_wait());
    take_signals();
    look_aside();
    ranks_.collect();
    end_when_due();
  }
  ranks_.drain(std::chrono::seconds(2));
  return end();
}

AttemptEnd Attempt::end() const {
  AttemptEnd result{.asked_by = asked_by_, .seconds = seconds_now() - started_};
  if (const auto culprit = ranks_.culprit()) {
    const int status = ranks_.end_of(*culprit).status;
    result.code = code_of(status);
    result.by_people = is_signal_of_people(status);
    result.words =
        format("rank {}: {}", static_cast<size_t>(job_.first_rank) + *culprit, words_of(*culprit));
    result.report = report_of(*culprit);
    return result;
  }
  for (size_t i = 0; i < static_cast<size_t>(job_.local_size) && result.code == 0; ++i)
    result.code = code_of(ranks_.end_of(i).status);
  return result;
}

std::string Attempt::report_of(size_t culprit) const {
  // A rank that lost another says so itself, and ends with this code.
  const bool follows = job_.is_own_program &&
                       code_of(ranks_.end_of(culprit).status) == bev::exit_code(ErrorKind::Comm);
  std::string text =
      format("rank {} (process {}) {}: {}", static_cast<size_t>(job_.first_rank) + culprit,
             ranks_.process_of(culprit),
             follows ? "ended first; its error message has the reason" : "failed first",
             words_of(culprit));
  const std::vector<std::string> last = ranks_.last_words(culprit);
  if (!last.empty()) text += "\n  its last lines on stderr:";
  for (const std::string& line : last) text += "\n    " + line;
  return text + others(culprit);
}

std::string Attempt::words_of(size_t rank) const {
  return exit_status_text(ranks_.end_of(rank).status, job_.is_own_program);
}

// How the other ranks ended, grouped by exit status.
std::string Attempt::others(size_t culprit) const {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (size_t i = 0; i < static_cast<size_t>(job_.local_size); ++i) {
    if (i == culprit) continue;
    const std::string end =
        words_of(i) +
        (ranks_.end_of(i).was_asked ? ", after this program had asked it to end" : "");
    auto same = std::find_if(groups.begin(), groups.end(),
                             [&](const auto& group) { return group.first == end; });
    if (same == groups.end()) same = groups.insert(groups.end(), {end, {}});
    same->second.push_back(job_.first_rank + static_cast<int>(i));
  }
  std::string text;
  for (const auto& [end, who] : groups) text += format("\n  {}: {}", ranks_text(who), end);
  return text;
}

// Milliseconds until something is due; -1: nothing is.
int Attempt::next_wait() const {
  const int aside = side_ == nullptr ? -1 : PollSource::kPatience;
  if (!due_) return aside;
  const int here = std::clamp(static_cast<int>((*due_ - seconds_now()) * 1000) + 1, 0, 60000);
  return aside < 0 ? here : std::min(here, aside);
}

void Attempt::take_signals() {
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
    } else if (seconds_now() - asked_at_ >= in_seconds(job_.until_insisting)) {
      ranks_.send(SIGKILL, true);
    }
  }
}

void Attempt::look_aside() {
  if (side_ == nullptr) return;
  side_->look();
  if (end_wanted_.empty()) end_wanted_ = side_->end_wanted();
}

void Attempt::end_when_due() {
  const bool is_wanted = ranks_.one_failed() || !end_wanted_.empty();
  if (ranks_.all_ended() || !is_wanted || stage_ == Stage::Killed) return;
  if (!due_) {
    due_ = seconds_now() + in_seconds(job_.until_asked);
  } else if (seconds_now() < *due_) {
    return;
  } else if (stage_ == Stage::Waiting) {
    note_(format("{} and other ranks are still running: sending SIGTERM",
                 end_wanted_.empty() ? "a rank has failed" : end_wanted_));
    ranks_.send(SIGTERM, true);
    stage_ = Stage::Asked;
    due_ = seconds_now() + in_seconds(job_.until_killed);
  } else {
    ranks_.send(SIGKILL, true);
    stage_ = Stage::Killed;
    due_.reset();
  }
}

SignalQueue::SignalQueue() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP})
    sigaddset(&wanted, signal);
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
  descriptor_ = Descriptor(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  struct sigaction ignored{};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignored, &pipe_before_);
}

SignalQueue::~SignalQueue() {
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalQueue::next() const {
  signalfd_siginfo signal{};
  return ::read(descriptor_.get(), &signal, sizeof signal) == sizeof signal
             ? static_cast<int>(signal.ssi_signo)
             : 0;
}

int SignalQueue::next_request() const {
  while (const int signal = next())
    if (asks_for_the_end(signal) || signal == SIGUSR1 || signal == SIGUSR2) return signal;
  return 0;
}

bool asks_for_the_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

int wait_once(const SignalQueue& signals, PollSource* side, int milliseconds) {
  std::array<pollfd, 2> watched{
      {{.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
       {.fd = side == nullptr ? -1 : side->descriptor(), .events = POLLIN, .revents = 0}}};
  if (side != nullptr) milliseconds = std::min(milliseconds, PollSource::kPatience);
  ::poll(watched.data(), watched.size(), milliseconds);
  if (side != nullptr) side->look();
  return signals.next_request();
}

int pause(const SignalQueue& signals, std::chrono::milliseconds duration, PollSource* side) {
  const double until = seconds_now() + in_seconds(duration);
  for (;;) {
    const double left = until - seconds_now();
    if (left <= 0) return 0;
    if (const int signal = wait_once(signals, side, static_cast<int>(left * 1000) + 1))
      return signal;
  }
}

int supervise(const LaunchJob& job, const LaunchNote& note) {
  BEV_CHECK(job.outputs.size() == static_cast<size_t>(job.local_size), Internal,
            "{} outputs for {} ranks", job.outputs.size(), job.local_size);
  SignalQueue signals;
  RestartPolicy policy(job);
  for (int number = 0;; ++number) {
    const AttemptEnd end = Attempt(job, number, signals, note).run();
    if (end.code == 0 || end.asked_by != 0) {
      if (end.code != 0) note("ended by " + signal_name(end.asked_by));
      return end.code;
    }
    const RestartPolicy::Verdict verdict = policy.after(end);
    note(end.report + verdict.words);
    if (!verdict.again) return end.code;
    if (const int signal = pause(signals, verdict.wait)) return 128 + signal;
  }
}

int free_port() { return ListenPort("127.0.0.1", 0).port(); }

}  // namespace bev
