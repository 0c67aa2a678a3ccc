// The communicators of one rank, one for each set of axes that somebody sums or gathers over.
#pragma once

#include <map>
#include <memory>

#include "comm/communicator.h"
#include "parallel/parallel_layout.h"

namespace bev {

// What a rank sent to others, by the axis it went along.
struct CommVolume {
  double tensor = 0;    // with the gradients of replicated heads
  double data = 0;      // with the shares of divided state
  double pipeline = 0;  // with the gradient of an embedding that both ends hold
  double scalars = 0;   // sums over several axes: the loss, the gradient's norm

  double total() const { return tensor + data + pipeline + scalars; }
};

class ProcessGroups {
 public:
  // All ranks of the world make theirs at the same time. The world must outlive this.
  ProcessGroups(const ParallelLayout& layout, Communicator& world);

  const ParallelLayout& layout() const { return layout_; }
  int rank() const { return world_.rank(); }
  int coordinate(Axis axis) const { return layout_.grid().coordinate(rank(), axis); }

  Communicator& world() { return world_; }
  // The ranks that differ from this one along one axis only.
  Communicator& tensor() { return *tensor_; }
  Communicator& data() { return *data_; }
  Communicator& pipeline() { return *pipeline_; }
  // The ranks that hold one copy of the model.
  Communicator& model_parallel() { return *model_; }
  // The ranks that see other tokens of a step, or other layers.
  Communicator& loss_group() { return *tokens_; }
  // The first and the last stage, which share a tied embedding: for ranks that hold one of them.
  Communicator& embedding_group() { return *ends_; }
  // `count` neighbours along the tensor axis, which hold the same unit of a parameter.
  Communicator& kv_replica_group(int count);

  // Since this was made.
  CommVolume sent() const;

 private:
  std::unique_ptr<Communicator> over(const AxisSet& axes);

  ParallelLayout layout_;
  Communicator& world_;
  double world_before_;  // bytes it had sent
  std::unique_ptr<Communicator> tensor_, data_, pipeline_, model_, tokens_, ends_;
  std::map<int, std::unique_ptr<Communicator>> holders_;
};

}  // namespace bev
