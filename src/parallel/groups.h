// The communicators of one rank, one for each set of axes that somebody sums or gathers over.
#pragma once

#include <map>
#include <memory>

#include "comm/communicator.h"
#include "parallel/layout.h"

namespace bev {

class Groups {
 public:
  // All ranks of the world make theirs at the same time. The world must outlive this.
  Groups(const ParallelLayout& layout, Communicator& world);

  const ParallelLayout& layout() const { return layout_; }
  int rank() const { return world_.rank(); }
  int coordinate(Axis axis) const { return layout_.grid().coordinate(rank(), axis); }

  Communicator& world() { return world_; }
  // The ranks that differ from this one along one axis only.
  Communicator& tensor() { return *tensor_; }
  Communicator& data() { return *data_; }
  Communicator& pipeline() { return *pipeline_; }
  // The ranks that hold one copy of the model.
  Communicator& model() { return *model_; }
  // The ranks that see other tokens of a step, or other layers.
  Communicator& tokens() { return *tokens_; }
  // The first and the last stage, which share a tied embedding: for ranks that hold one of them.
  Communicator& ends() { return *ends_; }
  // `count` neighbours along the tensor axis, which hold the same unit of a parameter.
  Communicator& holders(int count);

 private:
  std::unique_ptr<Communicator> over(const AxisSet& axes);

  ParallelLayout layout_;
  Communicator& world_;
  std::unique_ptr<Communicator> tensor_, data_, pipeline_, model_, tokens_, ends_;
  std::map<int, std::unique_ptr<Communicator>> holders_;
};

}  // namespace bev
