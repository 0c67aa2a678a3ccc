// Whether somebody is still heard of.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace bev {

// Time while this process runs. A process that was stopped for an hour has not listened for an
// hour: no step between two looks at the clock counts for more than `most`.
class AwakeClock {
 public:
  explicit AwakeClock(std::chrono::nanoseconds most) : most_(most) {}

  std::chrono::nanoseconds at(std::chrono::steady_clock::time_point now) {
    passed_ +=
        std::clamp<std::chrono::nanoseconds>(now - last_, std::chrono::nanoseconds(0), most_);
    last_ = std::max(last_, now);
    return passed_;
  }

 private:
  std::chrono::nanoseconds most_, passed_{0};
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class HeartbeatMonitor {
 public:
  enum class News { None, Silent, Again, Over };

  // Silent is said after `silence`, Over after `limit`.
  HeartbeatMonitor(std::chrono::nanoseconds silence, std::chrono::nanoseconds limit,
                   std::chrono::nanoseconds now)
      : silence_(silence), limit_(limit), heard_(now) {}

  // Something was heard. Again: for the first time since it was called silent.
  News heard(std::chrono::nanoseconds now) {
    heard_ = now;
    return std::exchange(silent_, false) ? News::Again : News::None;
  }
  News look(std::chrono::nanoseconds now) {
    if (silent_for(now) >= limit_) return News::Over;
    if (silent_ || silent_for(now) < silence_) return News::None;
    silent_ = true;
    return News::Silent;
  }
  std::chrono::nanoseconds silent_for(std::chrono::nanoseconds now) const { return now - heard_; }

 private:
  std::chrono::nanoseconds silence_, limit_, heard_;
  bool silent_ = false;
};

}  // namespace bev
