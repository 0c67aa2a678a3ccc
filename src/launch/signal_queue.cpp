#include "launch/signal_queue.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"

namespace bev {

SignalQueue::SignalQueue() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP})
    sigaddset(&wanted, signal);
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
  descriptor_ = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  struct sigaction ignored{};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignored, &pipe_before_);
}

SignalQueue::~SignalQueue() {
  if (descriptor_ >= 0) ::close(descriptor_);
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalQueue::next() const {
  signalfd_siginfo signal{};
  return ::read(descriptor_, &signal, sizeof signal) == sizeof signal
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

int pause(const SignalQueue& signals, std::chrono::milliseconds duration) {
  const double until = seconds_now() + std::chrono::duration<double>(duration).count();
  for (;;) {
    const double left = until - seconds_now();
    if (left <= 0) return 0;
    pollfd watched{.fd = signals.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&watched, 1, static_cast<int>(left * 1000) + 1);
    if (const int signal = signals.next_request()) return signal;
  }
}

}  // namespace bev
