// Wakes a thread that polls.
#pragma once

#include "net/socket.h"

namespace bev {

class WakeSignal {
 public:
  WakeSignal();

  // To be polled for input.
  int descriptor() const { return event_.get(); }
  // From any thread.
  void raise() const;
  void clear() const;

 private:
  Socket event_;
};

}  // namespace bev
