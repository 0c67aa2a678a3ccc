// Ending a run from outside.
#pragma once

#include <csignal>

namespace bev::app {

// While it lives, SIGINT and SIGTERM only ask for an end; another one seconds later ends the
// program at once. A reader of the log that goes away (SIGPIPE) ends nothing, nor does a file that
// may not grow (SIGXFSZ): writing it fails.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool asked() const;

 private:
  struct sigaction old_interrupt_{}, old_terminate_{}, old_pipe_{}, old_file_size_{};
};

}  // namespace bev::app
