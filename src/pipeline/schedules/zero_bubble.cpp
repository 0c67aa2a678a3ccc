#include <utility>

#include "pipeline/schedules/compute_order.h"

namespace bev {

namespace {

class SplitOrder {
 public:
  explicit SplitOrder(uint32_t micros) : micros_(micros) {}

  void forward() { add(Act::Forward, forwards_); }
  void backward_input() { add(Act::BackwardInput, inputs_); }
  void backward_weight() { add(Act::BackwardWeight, weights_); }
  bool has_forward() const { return forwards_ < micros_; }
  bool has_backward() const { return inputs_ < micros_; }
  bool has_postponed() const { return weights_ < inputs_; }
  ComputeOrder take() { return std::move(order_); }

 private:
  void add(Act act, uint32_t& next) { order_.push_back({act, 0, next++}); }

  uint32_t micros_;
  uint32_t forwards_ = 0, inputs_ = 0, weights_ = 0;  // done so far
  ComputeOrder order_;
};

}  // namespace

// With as many micro-batches in flight as there are ranks, on each of them: a later rank, which has
// fewer forwards ahead, postpones more weight gradients. It starts later by as much and has them
// left when the last gradients have gone to the ranks before.
ComputeOrder zero_bubble_order(const PipelineShape& shape, int rank) {
  SplitOrder order(static_cast<uint32_t>(shape.micros));
  const int ahead = shape.ranks - 1 - rank;
  for (int i = 0; i < ahead && order.has_forward(); ++i) order.forward();
  for (int i = 0; i <= rank && order.has_forward(); ++i) {
    order.forward();
    order.backward_input();
  }
  while (order.has_backward()) {
    if (order.has_postponed()) order.backward_weight();
    if (order.has_forward()) order.forward();
    order.backward_input();
  }
  while (order.has_postponed()) order.backward_weight();
  return order.take();
}

}  // namespace bev
