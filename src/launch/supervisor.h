// Starts the ranks of one machine, supervises them, restarts them and reports how they ended.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include "launch/supervised_ranks.h"

namespace bev {

// Signals to the launcher, in the order in which it handles them.

// While it exists, signals are queued in a descriptor and SIGPIPE is ignored, so that the launcher
// survives when the reader of its output exits.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_.get(); }
  // The signal mask before.
  const sigset_t& before() const { return before_; }
  // The next signal; 0: none is pending.
  int next() const;
  // For use while no ranks run that could handle SIGUSR1 and SIGUSR2: returns the next signal that
  // asks to stop or is one of these two, and drops all others. 0: none is pending.
  int next_request() const;

 private:
  Descriptor descriptor_;
  sigset_t before_{};
  struct sigaction pipe_before_{};
};

// True for SIGINT, SIGTERM and SIGHUP. Ranks decide what SIGUSR1 and SIGUSR2 mean.
bool asks_for_the_end(int signal);

// Additional event source in the launcher's poll loop.

class PollSource {
 public:
  virtual ~PollSource() = default;

  // The poll loop calls look() at least once in this many milliseconds.
  static constexpr int kPatience = 1000;

  // Readable when look() has something to do.
  virtual int descriptor() const = 0;
  // Handles pending events, without waiting.
  virtual void look() = 0;
  // Why the ranks of this machine must end; empty: they need not.
  virtual std::string end_wanted() const = 0;
};

// Waits for a signal, for input of `side` (optional) or for `milliseconds`, then calls
// side->look(). With `side` it waits at most PollSource::kPatience. Returns
// SignalQueue::next_request().
int wait_once(const SignalQueue& signals, PollSource* side, int milliseconds);
// Waits for `duration`. Returns the signal that ended the wait early; 0: none did.
int pause(const SignalQueue& signals, std::chrono::milliseconds duration,
          PollSource* side = nullptr);

using LaunchNote = std::function<void(const std::string&)>;

// How the ranks of a machine ended.
struct AttemptEnd {
  int code = 0;      // 0, or that of the rank that failed first; 128 + N if signal N killed it
  int asked_by = 0;  // the signal with which the user stopped the launcher; 0: none
  bool by_people = false;  // a rank was killed by a signal that users send and the kernel does not
  double seconds = 0;
  std::string words{};   // "rank 1: killed by signal 9 (SIGKILL)"; empty: none failed by itself
  std::string report{};  // several lines: `words`, its last output, and how the other ranks ended
};

// One start of all ranks of a machine, supervised until all have exited.
class Attempt {
 public:
  // Starts the ranks. `job`, `signals` and `side` (optional) must outlive this.
  Attempt(const LaunchJob& job, int number, SignalQueue& signals, LaunchNote note,
          PollSource* side = nullptr);

  AttemptEnd run();

 private:
  AttemptEnd end() const;
  std::string words_of(size_t rank) const;
  std::string report_of(size_t culprit) const;
  std::string others(size_t culprit) const;
  int next_wait() const;
  void take_signals();
  void look_aside();
  void end_when_due();

  enum class Stage : uint8_t { Waiting, Asked, Killed };

  const LaunchJob& job_;
  SignalQueue& signals_;
  LaunchNote note_;
  PollSource* side_;
  SupervisedRanks ranks_;
  Stage stage_ = Stage::Waiting;
  std::optional<double> due_;
  std::string end_wanted_;  // why, if `side` asks for the end; else empty
  int asked_by_ = 0;
  double started_, asked_at_ = 0;
};

// Returns the exit code: 0, or that of the rank that failed first, 128 + N where signal N killed
// it. A rank that ends with the exit code of a Comm error has been let down by another, which is
// looked for first. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all ranks. When
// one has failed, the others get `until_asked`, then SIGTERM, then `until_killed`, then SIGKILL;
// all are started again as RestartPolicy says, unless a signal asked for the end. No rank outlives
// the calling thread.
//
// Gives what people should read to `note`, lines without the last end. REQUIRES: no other thread of
// this process waits for signals.
int supervise(const LaunchJob& job, const LaunchNote& note);

// A port of this machine that nobody has at the moment.
int free_port();

}  // namespace bev
