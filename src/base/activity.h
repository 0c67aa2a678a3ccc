// What a rank is doing, for the others to read when it goes silent.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace bev {

// Written by the thread that trains, read by the one that reports.
class Activity {
 public:
  // Until the matching end(); does not nest. The texts must outlive it. `peers`: "ranks 1, 3".
  void begin(const char* what, uint64_t bytes = 0, const std::string* peers = nullptr);
  void end();
  void at_step(int64_t step);

  // "all_reduce of 4.2 MB with ranks 1, 3 for 12.3 s, step 17"; "computing for 0.2 s, step 17"
  // between two.
  std::string text() const;
  // begin() calls so far: a rank that stands still does not count on.
  uint64_t count() const;

 private:
  using Clock = std::chrono::steady_clock;
  mutable std::mutex mutex_;
  const char* what_ = nullptr;
  const std::string* peers_ = nullptr;
  uint64_t bytes_ = 0, count_ = 0;
  int64_t step_ = 0;
  Clock::time_point since_ = Clock::now();
};

// What a rank's last step took.
struct RankTimes {
  int64_t step = 0;
  double compute = 0, wait = 0;  // seconds
};

}  // namespace bev
