// Work that has to end.
#pragma once

#include <chrono>
#include <set>

#include "serve/http/http_handler.h"

namespace bev {

class TimedWork;

// Of the thread of the server.
struct WorkClock {
  std::chrono::milliseconds limit{0};  // of one request
  std::set<TimedWork*> open{};

  // Tells those whose time is over.
  void tick();
};

class TimedWork : public HttpWork {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit TimedWork(WorkClock& clock) : clock_(clock) { clock_.open.insert(this); }
  ~TimedWork() override { clock_.open.erase(this); }

  // Ends the answer. Called once.
  virtual void expire() = 0;

 private:
  friend struct WorkClock;
  WorkClock& clock_;
  Time deadline_ = std::chrono::steady_clock::now() + clock_.limit;
};

inline void WorkClock::tick() {
  const auto now = std::chrono::steady_clock::now();
  const std::set<TimedWork*> all = open;
  for (TimedWork* work : all) {
    if (now < work->deadline_) continue;
    open.erase(work);
    work->expire();
  }
}

}  // namespace bev
