// Monotonic time.
#pragma once

#include <chrono>

namespace bev {

// Seconds since an arbitrary moment; only differences mean something.
inline double seconds_now() {
  using std::chrono::duration;
  using std::chrono::steady_clock;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

inline double in_seconds(std::chrono::milliseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace bev
