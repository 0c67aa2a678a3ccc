// The communicators of one rank: one per set of axes, made when it is first asked for.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "parallel/parallel_layout.h"

namespace bev {

// Bytes that a rank sent to others, by the axis that they went along.
struct CommVolume {
  double tensor = 0;    // including gradients of replicated KV heads
  double data = 0;      // of the shard groups
  double pipeline = 0;  // including gradients of parameters that several stages hold
  double scalars = 0;   // sums over several axes: the losses, the gradient norm

  double total() const { return tensor + data + pipeline + scalars; }
};

class ProcessGroups {
 public:
  // All ranks of the world construct theirs at the same time. The world must outlive this. Makes
  // the groups that every layout uses.
  ProcessGroups(const ParallelLayout& layout, Communicator& world);

  const ParallelLayout& layout() const { return layout_; }
  int rank() const { return world_.rank(); }
  int coordinate(Axis axis) const { return layout_.grid().coordinate(rank(), axis); }

  Communicator& world() { return world_; }
  // The ranks that differ from this one along these axes only. Cached: the members of a group ask
  // for new groups in the same order.
  Communicator& over(GroupKey key);
  Communicator& over(AxisSet dense_axes) { return over(GroupKey{GridKind::Dense, dense_axes}); }
  // The pipeline ranks at these coordinates, which hold the same parameters; this rank is one of
  // them. Cached like over().
  Communicator& of_stages(const std::vector<int>& coordinates);
  // `count` neighbours along Axis::Tensor, which hold the same KV heads.
  Communicator& kv_replica_group(int count);

  // Since this was constructed.
  CommVolume sent() const;

 private:
  ParallelLayout layout_;
  Communicator& world_;
  double world_before_;  // bytes it had sent
  std::map<GroupKey, std::unique_ptr<Communicator>> groups_;
  std::map<std::vector<int>, std::unique_ptr<Communicator>> stages_;
  std::map<int, std::unique_ptr<Communicator>> kv_replicas_;
};

}  // namespace bev
