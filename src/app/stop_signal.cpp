#include "app/stop_signal.h"

#include <ctime>

namespace bev::app {

namespace {

// timeout(1) and batch systems send a signal to a process and at once to its group: both are one
// request.
constexpr std::time_t kOneRequestSeconds = 2;

// A signal handler can reach nothing else.
volatile std::sig_atomic_t stop_requested = 0;
volatile std::time_t requested_at = 0;

extern "C" void request_stop(int signal) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (stop_requested == 0) {
    requested_at = now.tv_sec;
    stop_requested = 1;
  } else if (now.tv_sec - requested_at >= kOneRequestSeconds) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

StopSignal::StopSignal() {
  struct sigaction action{};
  action.sa_handler = request_stop;
  ::sigaction(SIGINT, &action, &old_interrupt_);
  ::sigaction(SIGTERM, &action, &old_terminate_);
  struct sigaction ignored{};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignored, &old_pipe_);
  ::sigaction(SIGXFSZ, &ignored, &old_file_size_);
}

StopSignal::~StopSignal() {
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
  ::sigaction(SIGPIPE, &old_pipe_, nullptr);
  ::sigaction(SIGXFSZ, &old_file_size_, nullptr);
}

bool StopSignal::asked() const { return stop_requested != 0; }

}  // namespace bev::app
