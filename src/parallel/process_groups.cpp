#include "parallel/process_groups.h"

#include "base/check.h"
#include "comm/communicator.h"

namespace bev {

namespace {

std::unique_ptr<Communicator> part_of(Communicator& whole, const std::vector<int>& ranks) {
  if (ranks.size() == 1) return std::make_unique<SingleCommunicator>();
  return whole.split(ranks);
}

}  // namespace

ProcessGroups::ProcessGroups(const ParallelLayout& layout, Communicator& world)
    : layout_(layout), world_(world), world_before_(world.bytes_sent()) {
  BEV_CHECK(world.size() == layout.world(), Internal, "a layout of {} ranks in a world of {}",
            layout.world(), world.size());
  tensor_ = over({Axis::Tensor});
  data_ = over({Axis::Data, Axis::Context});
  pipeline_ = over({Axis::Pipeline});
  pipeline_->connect_neighbours();
  model_ = over({Axis::Tensor, Axis::Pipeline});
  tokens_ = over({Axis::Data, Axis::Context, Axis::Pipeline});
  const int last = layout.pipeline - 1, stage = coordinate(Axis::Pipeline);
  const bool has_other = last > 0 && (stage == 0 || stage == last);
  ends_ = has_other ? pipeline_->split(std::vector<int>{0, last})
                    : std::make_unique<SingleCommunicator>();
}

std::unique_ptr<Communicator> ProcessGroups::over(const AxisSet& axes) {
  return part_of(world_, layout_.grid().peers(rank(), axes));
}

Communicator& ProcessGroups::kv_replica_group(int count) {
  std::unique_ptr<Communicator>& group = holders_[count];
  if (group == nullptr) {
    const int first = tensor_->rank() / count * count;
    std::vector<int> ranks;
    ranks.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) ranks.push_back(first + i);
    group = part_of(*tensor_, ranks);
  }
  return *group;
}

CommVolume ProcessGroups::sent() const {
  CommVolume bytes{.tensor = tensor_->bytes_sent(),
                   .data = data_->bytes_sent(),
                   .pipeline = pipeline_->bytes_sent() + ends_->bytes_sent(),
                   .scalars = model_->bytes_sent() + tokens_->bytes_sent() + world_.bytes_sent() -
                              world_before_};
  for (const auto& [count, group] : holders_) bytes.tensor += group->bytes_sent();
  return bytes;
}

}  // namespace bev
