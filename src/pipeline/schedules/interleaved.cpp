#include <algorithm>
#include <utility>

#include "pipeline/schedules/compute_order.h"

namespace bev {

namespace {

// Groups of as many micro-batches as there are ranks go through a rank's chunks one after another,
// so that the first micro-batch comes back for the next chunk when the last one has left this one.
// If the last group is not full, the order is that of the full one without the micro-batches that
// do not exist: leaving some out of an order that works leaves one that works.
class GroupedOrder {
 public:
  explicit GroupedOrder(const PipelineShape& shape)
      : shape_(shape), group_(int64_t{shape.ranks} * shape.chunks) {}

  // With those that do not exist.
  int64_t count() const { return (shape_.micros + shape_.ranks - 1) / shape_.ranks * group_; }

  void forward(int64_t k) { add(Act::Forward, chunk(k), k); }
  void backward(int64_t k) { add(Act::Backward, shape_.chunks - 1 - chunk(k), k); }
  ComputeOrder take() { return std::move(order_); }

 private:
  int64_t chunk(int64_t k) const { return k % group_ / shape_.ranks; }
  void add(Act act, int64_t chunk, int64_t k) {
    const int64_t micro = k / group_ * shape_.ranks + k % shape_.ranks;
    if (micro >= shape_.micros) return;
    order_.push_back({act, static_cast<uint16_t>(chunk), static_cast<uint32_t>(micro)});
  }

  PipelineShape shape_;
  int64_t group_;  // forwards of a group on a rank
  ComputeOrder order_;
};

}  // namespace

ComputeOrder interleaved_order(const PipelineShape& shape, int rank) {
  if (shape.chunks == 1) return one_f_one_b_order(shape, rank);  // as fast, with fewer slots
  GroupedOrder order(shape);
  // Twice the ranks behind: what 1F1B waits for, its micro-batch's way to the last rank and back,
  // is filled with forwards. Then the first group must have entered the last chunk.
  const int64_t ahead = std::min(
      2 * int64_t{shape.ranks - 1 - rank} + int64_t{shape.chunks - 1} * shape.ranks, order.count());
  for (int64_t k = 0; k < ahead; ++k) order.forward(k);
  for (int64_t k = 0; k < order.count(); ++k) {
    if (k + ahead < order.count()) order.forward(k + ahead);
    order.backward(k);
  }
  return order.take();
}

ComputeOrder forward_order(const PipelineShape& shape, int /*rank*/) {
  GroupedOrder order(shape);
  for (int64_t k = 0; k < order.count(); ++k) order.forward(k);
  return order.take();
}

}  // namespace bev
