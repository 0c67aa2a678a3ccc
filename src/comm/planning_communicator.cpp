#include "comm/planning_communicator.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

std::unique_ptr<Communicator> PlanningCommunicator::split(std::span<const int> ranks) {
  const auto mine = std::find(ranks.begin(), ranks.end(), rank());
  BEV_CHECK(mine != ranks.end(), Internal, "rank {} splits off a group without itself", rank());
  auto group = std::make_unique<PlanningCommunicator>(static_cast<int>(mine - ranks.begin()),
                                                      static_cast<int>(ranks.size()));
  group->set_label(label());
  return group;
}

}  // namespace bev
