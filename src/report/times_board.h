// Where ranks that are threads leave what their steps took.
#pragma once

#include <mutex>
#include <vector>

#include "coordination/coordination_client.h"

namespace bev {

// All functions may be called from any thread.
class TimesBoard {
 public:
  explicit TimesBoard(int ranks) : times_(static_cast<size_t>(ranks)) {}

  void report(int rank, const RankTimes& times) {
    const std::lock_guard lock(mutex_);
    times_[static_cast<size_t>(rank)] = times;
  }
  std::vector<RankTimes> all() const {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<RankTimes> times_;
};

}  // namespace bev
