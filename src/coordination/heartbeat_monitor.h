// Whether a peer is alive: it must send something before a timeout.
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
  enum class Change { None, Late, Resumed, Lost };

  // A peer is late after `timeout`, and lost after `limit`.
  HeartbeatMonitor(std::chrono::nanoseconds timeout, std::chrono::nanoseconds limit,
                   std::chrono::nanoseconds now)
      : timeout_(timeout), limit_(limit), last_received_(now) {}

  // Any bytes of the peer have arrived. Resumed: the first after it was late.
  Change received(std::chrono::nanoseconds now) {
    last_received_ = now;
    return std::exchange(is_late_, false) ? Change::Resumed : Change::None;
  }
  Change look(std::chrono::nanoseconds now) {
    if (since_received(now) >= limit_) return Change::Lost;
    if (is_late_ || since_received(now) < timeout_) return Change::None;
    is_late_ = true;
    return Change::Late;
  }
  std::chrono::nanoseconds since_received(std::chrono::nanoseconds now) const {
    return now - last_received_;
  }

 private:
  std::chrono::nanoseconds timeout_, limit_, last_received_;
  bool is_late_ = false;
};

}  // namespace bev
