#include "parallel/process_groups.h"

#include <numeric>

#include "base/check.h"
#include "comm/communicator.h"

namespace bev {

namespace {

std::unique_ptr<Communicator> split(Communicator& whole, const std::vector<int>& ranks) {
  if (ranks.size() == 1) return std::make_unique<SingleCommunicator>();
  return whole.split(ranks);
}

}  // namespace

ProcessGroups::ProcessGroups(const ParallelLayout& layout, Communicator& world)
    : layout_(layout), world_(world), world_before_(world.bytes_sent()) {
  BEV_CHECK(world.size() == layout.world(), Internal, "a layout of {} ranks in a world of {}",
            layout.world(), world.size());
  over({Axis::Tensor});
  over(shard_group(GridKind::Dense));
  over({Axis::Pipeline}).connect_neighbours();
  over({Axis::Context, Axis::Data, Axis::Pipeline});
}

Communicator& ProcessGroups::over(GroupKey key) {
  std::unique_ptr<Communicator>& group = groups_[key];
  if (group == nullptr) group = split(world_, layout_.grid(key.grid).peers(rank(), key.axes));
  return *group;
}

Communicator& ProcessGroups::of_stages(const std::vector<int>& coordinates) {
  std::unique_ptr<Communicator>& group = stages_[coordinates];
  if (group == nullptr) group = split(over({Axis::Pipeline}), coordinates);
  return *group;
}

Communicator& ProcessGroups::kv_replica_group(int count) {
  std::unique_ptr<Communicator>& group = kv_replicas_[count];
  if (group == nullptr) {
    Communicator& tensor = over({Axis::Tensor});
    std::vector<int> ranks(static_cast<size_t>(count));
    std::iota(ranks.begin(), ranks.end(), tensor.rank() / count * count);
    group = split(tensor, ranks);
  }
  return *group;
}

CommVolume ProcessGroups::sent() const {
  CommVolume bytes{.scalars = world_.bytes_sent() - world_before_};
  for (const auto& [key, group] : groups_) {
    if (key.axes == AxisSet{Axis::Tensor}) {
      bytes.tensor += group->bytes_sent();
    } else if (key == shard_group(key.grid)) {
      bytes.data += group->bytes_sent();
    } else if (key.axes == AxisSet{Axis::Pipeline}) {
      bytes.pipeline += group->bytes_sent();
    } else {
      bytes.scalars += group->bytes_sent();
    }
  }
  for (const auto& [stages, group] : stages_) bytes.pipeline += group->bytes_sent();
  for (const auto& [count, group] : kv_replicas_) bytes.tensor += group->bytes_sent();
  return bytes;
}

}  // namespace bev
