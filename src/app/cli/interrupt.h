// Ctrl-C that ends what is being done and not the program.
#pragma once

#include <csignal>

namespace bev::app {

// While it lives, SIGINT is remembered instead of ending the program, and interrupts a read() that
// waits. REQUIRES: there is one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool is_asked() const;
  void forget();

 private:
  struct sigaction old_{};
};

}  // namespace bev::app
