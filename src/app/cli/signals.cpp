#include "app/cli/signals.h"

#include <unistd.h>

#include <cstring>
#include <ctime>

namespace bev::app {

namespace {

// timeout(1) and batch systems send a signal to a process and at once to its group: both are one
// request.
constexpr std::time_t kOneRequestSeconds = 2;

// A signal handler can reach nothing else.
volatile std::sig_atomic_t is_deferred = 0;
volatile std::sig_atomic_t has_others = 0;
volatile std::sig_atomic_t stop_requested = 0;  // by which signal
volatile std::time_t requested_at = 0;

void write_all(const char* text) {
  [[maybe_unused]] const ssize_t put = ::write(STDOUT_FILENO, text, std::strlen(text));
}

extern "C" void request_stop(int signal) {
  if (is_deferred == 0 && has_others != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  if (is_deferred == 0) {
    // One of the few functions that a handler may call.
    const char* name = ::sigabbrev_np(signal);
    write_all("exiting program after receiving SIG");
    write_all(name);
    write_all(".\nrun ended | reason: stopped by SIG");
    write_all(name);
    write_all(" before the training began | complete: no |\n");
    ::_exit(0);
  }
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (stop_requested == 0) {
    requested_at = now.tv_sec;
    stop_requested = signal;
  } else if (now.tv_sec - requested_at >= kOneRequestSeconds) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

StopSignal::StopSignal() {
  is_deferred = 0;
  has_others = 0;
  stop_requested = 0;
  struct sigaction action{};
  action.sa_handler = request_stop;
  for (size_t i = 0; i < kAsking.size(); ++i) {
    ::sigaction(kAsking[i], nullptr, &old_[i]);
    // What nohup(1) has arranged stays.
    const bool is_ignored = kAsking[i] == SIGHUP && old_[i].sa_handler == SIG_IGN;
    if (!is_ignored) ::sigaction(kAsking[i], &action, nullptr);
  }
  struct sigaction ignored{};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignored, &old_pipe_);
  ::sigaction(SIGXFSZ, &ignored, &old_file_size_);
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kAsking.size(); ++i) ::sigaction(kAsking[i], &old_[i], nullptr);
  ::sigaction(SIGPIPE, &old_pipe_, nullptr);
  ::sigaction(SIGXFSZ, &old_file_size_, nullptr);
}

void StopSignal::expect_others() { has_others = 1; }

void StopSignal::defer() { is_deferred = 1; }

int StopSignal::asked() const { return stop_requested; }

namespace {

// A signal handler can reach nothing else.
volatile std::sig_atomic_t is_interrupted = 0;

extern "C" void remember_interrupt(int) { is_interrupted = 1; }

}  // namespace

Interrupt::Interrupt() {
  is_interrupted = 0;
  struct sigaction action{};
  action.sa_handler = remember_interrupt;
  ::sigaction(SIGINT, &action, &old_);
}

Interrupt::~Interrupt() { ::sigaction(SIGINT, &old_, nullptr); }

bool Interrupt::is_asked() const { return is_interrupted != 0; }

void Interrupt::forget() { is_interrupted = 0; }

}  // namespace bev::app
