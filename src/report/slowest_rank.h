// The rank that the others wait for, from the step times of all ranks.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "coordination/coordination_client.h"

namespace bev {

class SlowestRank {
 public:
  // The latest times of all ranks, by rank; a rank that has not reported since is not counted
  // again.
  void add(std::span<const RankTimes> latest);

  // "3 (+12.3 %)": the rank that computed longest since the last call, and by how much longer than
  // the mean; empty when nothing was reported.
  std::string take_text();

 private:
  struct Sum {
    int64_t step = 0;
    double compute = 0;
    int64_t count = 0;
  };
  std::vector<Sum> ranks_;
};

// Where ranks that are threads leave what their steps took.

// All functions may be called from any thread.
class RankTimesBoard {
 public:
  explicit RankTimesBoard(int ranks) : times_(static_cast<size_t>(ranks)) {}

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
