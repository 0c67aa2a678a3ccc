// Signals: stop requests to a run, and Ctrl-C in the interactive verbs.
#pragma once

#include <array>
#include <csignal>

namespace bev::app {

// While it lives, SIGINT, SIGTERM, SIGUSR1, SIGUSR2 and, unless it was ignored, SIGHUP ask for the
// end of a run. Until defer() there is nothing to lose, and the program ends at once: with a line
// and exit code 0, or as the system would where others wait for it and must notice. From then on
// they only ask; another one seconds later ends the program as the system would. A reader of the
// log that goes away (SIGPIPE) ends nothing, nor does a file that may not grow (SIGXFSZ): writing
// it fails. REQUIRES: there is one at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Others wait for this process: those of its job, or who wants to be served.
  void expect_others();
  void defer();
  // The signal that asked for the end; 0: none did.
  int asked() const;

 private:
  static constexpr std::array<int, 5> kAsking{SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP};
  std::array<struct sigaction, kAsking.size()> old_{};
  struct sigaction old_pipe_{}, old_file_size_{};
};

// Ctrl-C that ends what is being done and not the program.

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
