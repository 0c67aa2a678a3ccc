// Which rank the others wait for.
#pragma once

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

}  // namespace bev
