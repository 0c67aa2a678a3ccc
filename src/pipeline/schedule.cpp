#include "pipeline/schedule.h"

#include <functional>
#include <limits>
#include <queue>

#include "base/check.h"
#include "pipeline/schedules/compute_order.h"

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

}  // namespace bev
