// One start of all ranks of a machine, until all have ended.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include "launch/supervised_ranks.h"

namespace bev {

// The signals of a launcher, in the order in which it looks at them.

// While it lives, signals wait in a descriptor; a reader of our streams that goes away ends
// nothing.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_.get(); }
  // The signals that were blocked before.
  const sigset_t& before() const { return before_; }
  // 0: none waits.
  int next() const;
  // While no ranks run, who could be asked: the next that asks for the end, SIGUSR1 and SIGUSR2
  // among them; others are forgotten. 0: none waits.
  int next_request() const;

 private:
  Descriptor descriptor_;
  sigset_t before_{};
  struct sigaction pipe_before_{};
};

// SIGINT, SIGTERM and SIGHUP; ranks decide what SIGUSR1 and SIGUSR2 mean.
bool asks_for_the_end(int signal);

// What a launcher looks after beside its ranks and its signals.

class PollSource {
 public:
  virtual ~PollSource() = default;

  // Milliseconds after which it is looked at even when there is nothing to read.
  static constexpr int kPatience = 1000;

  // Can be read when there is something to look at.
  virtual int descriptor() const = 0;
  // Does what there is to do, without waiting.
  virtual void look() = 0;
  // Why the ranks of this machine must end; empty: they need not.
  virtual std::string end_wanted() const = 0;
};

// Waits for a signal, something of `side`, which may be absent, or some milliseconds, and looks at
// `side`. Returns a signal that asks for the end, 0 when none does.
int wait_once(const SignalQueue& signals, PollSource* side, int milliseconds);
// Waits; returns the signal that ended the wait early, 0 when none did.
int pause(const SignalQueue& signals, std::chrono::milliseconds duration,
          PollSource* side = nullptr);

using LaunchNote = std::function<void(const std::string&)>;

// How the ranks of a machine ended.
struct AttemptEnd {
  int code = 0;      // 0, or that of the rank that failed first, 128 + N where signal N killed it
  int asked_by = 0;  // the signal to the launcher that people ended it with; 0: none
  bool by_people = false;  // a signal killed a rank that people send and the system does not
  double seconds = 0;
  std::string words{};   // "rank 1: killed by signal 9 (SIGKILL)"; empty: none failed by itself
  std::string report{};  // the same with what it said last and how the others ended, some lines
};

class Attempt {
 public:
  // Starts the ranks. `job`, `signals` and `side`, which may be absent, outlive this.
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
  std::string end_wanted_;  // why, where it is not a rank of this machine that failed
  int asked_by_ = 0;
  double started_, asked_at_ = 0;
};

}  // namespace bev
