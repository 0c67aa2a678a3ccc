// The signals of a launcher, in the order in which it looks at them.
#pragma once

#include <chrono>
#include <csignal>

namespace bev {

// While it lives, signals wait in a descriptor; a reader of our streams that goes away ends
// nothing.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_; }
  // The signals that were blocked before.
  const sigset_t& before() const { return before_; }
  // 0: none waits.
  int next() const;
  // While no ranks run, who could be asked: the next that asks for the end, SIGUSR1 and SIGUSR2
  // among them; others are forgotten. 0: none waits.
  int next_request() const;

 private:
  int descriptor_ = -1;
  sigset_t before_{};
  struct sigaction pipe_before_{};
};

// SIGINT, SIGTERM and SIGHUP; ranks decide what SIGUSR1 and SIGUSR2 mean.
bool asks_for_the_end(int signal);

// Waits; returns the signal that ended the wait early, 0 when none did.
int pause(const SignalQueue& signals, std::chrono::milliseconds duration);

}  // namespace bev
