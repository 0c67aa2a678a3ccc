#include "pipeline/schedule.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "base/check.h"
#include "config/resolve.h"

namespace bev {

namespace {

// Registers for micro-batches in flight: the lowest free one is taken.
class SlotPool {
 public:
  uint16_t take() {
    if (free_.empty()) {
      BEV_CHECK(made_ <= std::numeric_limits<uint16_t>::max(), Usage,
                "the pipeline's schedule keeps more than {} micro-batches in flight", made_);
      return static_cast<uint16_t>(made_++);
    }
    const uint16_t slot = free_.top();
    free_.pop();
    return slot;
  }
  void give(uint16_t slot) { free_.push(slot); }

 private:
  int made_ = 0;
  std::priority_queue<uint16_t, std::vector<uint16_t>, std::greater<>> free_;
};

// Adds loads, transfers and slots to what a rank computes.
Program completed(const ComputeOrder& order, const PipelineShape& shape, int rank, bool backward) {
  Program program;
  program.reserve(4 * order.size());
  const auto chunks = static_cast<size_t>(shape.chunks);
  std::vector<SlotPool> pools(chunks);
  std::vector<std::vector<uint16_t>> slots(
      chunks, std::vector<uint16_t>(static_cast<size_t>(shape.micros)));
  for (const Compute& compute : order) {
    const int stage = shape.stage(rank, compute.chunk);
    const bool first = stage == 0, last = stage == shape.last_stage();
    SlotPool& pool = pools[compute.chunk];
    uint16_t& slot = slots[compute.chunk][compute.micro];
    const auto emit = [&](Act act) {
      program.push_back({act, compute.chunk, compute.micro, slot});
    };
    switch (compute.act) {
      case Act::Forward:
        slot = pool.take();
        emit(Act::Load);
        if (!first) emit(Act::RecvForward);
        emit(Act::Forward);
        if (!last) emit(Act::SendForward);
        if (!backward) pool.give(slot);
        break;
      case Act::Backward:
      case Act::BackwardInput:
        if (!last) emit(Act::RecvBackward);
        emit(compute.act);
        if (!first) emit(Act::SendBackward);
        if (compute.act == Act::Backward) pool.give(slot);
        break;
      case Act::BackwardWeight:
        emit(Act::BackwardWeight);
        pool.give(slot);
        break;
      default: BEV_CHECK(false, Internal, "{} in an order of computation", name_of(compute.act));
    }
  }
  return program;
}

std::vector<Program> of_all_ranks(ComputeOrder (*order)(const PipelineShape&, int),
                                  const PipelineShape& shape, bool backward) {
  BEV_CHECK(shape.ranks >= 1 && shape.chunks >= 1 && shape.micros >= 0, Internal,
            "a schedule for {} ranks, {} chunks and {} micro-batches", shape.ranks, shape.chunks,
            shape.micros);
  BEV_CHECK(shape.ranks > 1 || shape.chunks == 1, Internal,
            "a schedule for {} chunks on one rank: it would send to itself", shape.chunks);
  std::vector<Program> programs;
  programs.reserve(static_cast<size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    programs.push_back(completed(order(shape, rank), shape, rank, backward));
  }
  return programs;
}

}  // namespace

std::vector<Program> build_schedule(ScheduleKind kind, const PipelineShape& shape) {
  BEV_CHECK(kind == ScheduleKind::Interleaved || shape.chunks == 1, Internal,
            "schedule {} for {} chunks: only interleaved takes several", name_of_choice(kind),
            shape.chunks);
  switch (kind) {
    case ScheduleKind::GPipe: return of_all_ranks(gpipe_order, shape, true);
    case ScheduleKind::OneFOneB: return of_all_ranks(one_f_one_b_order, shape, true);
    case ScheduleKind::Interleaved: return of_all_ranks(interleaved_order, shape, true);
    case ScheduleKind::ZeroBubble: return of_all_ranks(zero_bubble_order, shape, true);
  }
  throw Error(ErrorKind::Internal, "unknown schedule");
}

std::vector<Program> forward_only(const PipelineShape& shape) {
  return of_all_ranks(forward_order, shape, false);
}

ScheduleKind schedule_kind(const Config& config) {
  const ScheduleKind asked = config.parallel.schedule;
  const bool interleaves = asked == ScheduleKind::OneFOneB && pipeline_chunks(config) > 1;
  return interleaves ? ScheduleKind::Interleaved : asked;
}

PipelineShape pipeline_shape(const Config& config, int64_t micros) {
  const ParallelLayout layout = layout_of(config);
  return {.ranks = layout.pipeline,
          .chunks = layout.chunks,
          .micros = micros,
          .gradient_replaces_input = config.recompute.distribute && layout.tensor > 1};
}

std::vector<Program> step_schedule(const Config& config, int64_t micros) {
  return build_schedule(schedule_kind(config), pipeline_shape(config, micros));
}

ComputeOrder gpipe_order(const PipelineShape& shape, int /*rank*/) {
  ComputeOrder order;
  for (const Act act : {Act::Forward, Act::Backward}) {
    for (uint32_t micro = 0; micro < shape.micros; ++micro) order.push_back({act, 0, micro});
  }
  return order;
}

ComputeOrder one_f_one_b_order(const PipelineShape& shape, int rank) {
  ComputeOrder order;
  const auto micros = static_cast<uint32_t>(shape.micros);
  const uint32_t ahead = std::min(static_cast<uint32_t>(shape.ranks - 1 - rank), micros);
  for (uint32_t micro = 0; micro < ahead; ++micro) order.push_back({Act::Forward, 0, micro});
  for (uint32_t micro = 0; micro < micros; ++micro) {
    if (micro + ahead < micros) order.push_back({Act::Forward, 0, micro + ahead});
    order.push_back({Act::Backward, 0, micro});
  }
  return order;
}

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
  // Twice the number of later ranks: forwards fill the time that 1F1B waits while its micro-batch
  // travels to the last rank and back. Then the first group must have entered the last chunk.
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
