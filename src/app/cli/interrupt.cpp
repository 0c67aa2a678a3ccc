#include "app/cli/interrupt.h"

namespace bev::app {

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
