// Monotonic time, and the time of day.
#pragma once

#include <chrono>

namespace bev {

// Seconds since an arbitrary moment; only differences mean something.
inline double seconds_now() {
  using std::chrono::duration;
  using std::chrono::steady_clock;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Seconds since 1970.
inline double unix_seconds() {
  using std::chrono::duration;
  using std::chrono::system_clock;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

inline double in_seconds(std::chrono::milliseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace bev
