#include "optim/grad_reducer.h"

#include "base/check.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "optim/param_norms.h"

namespace bev {

GradReducer::GradReducer(ParamStore& params, GradBuffer& grads, ProcessGroups& groups)
    : params_(params), grads_(grads), groups_(groups) {
  plan_reductions();
  plan_norm_ranges();
  if (streams_buckets() && overlaps())
    shard_ = Buffer(params.device(), grads.max_shard_bytes(), "gradient bucket");
}

void GradReducer::plan_reductions() {
  bool joins = true;  // neighbours are one message, gaps included
  const auto add_run = [&](FlatRange range, Communicator& over) {
    if (range.count == 0) return;
    if (joins && !sums_.empty() && sums_.back().over == &over &&
        sums_.back().range.end() == range.begin) {
      sums_.back().range.count += range.count;
    } else {
      sums_.push_back({range, &over});
    }
  };
  // With sharded state a rank sums its shards only.
  const auto add = [&](FlatRange range, Communicator& over) {
    if (over.size() == 1) return;
    if (!shards_state()) {
      add_run(range, over);
    } else {
      for (const FlatSection& section : params_.sections())
        add_run(intersection(range, section.shard()), over);
    }
  };
  for (const FlatParam& place : params_.flat()) {
    const Placement& placement = place.param->spec.place;
    if (placement.sums_over_tensor())
      add({place.begin, place.count}, groups_.over(GroupKey{placement.grid, {Axis::Tensor}}));
    for (const Piece& piece : place.param->pieces) {
      if (piece.replicas == 1) continue;
      BEV_CHECK(placement.grid == GridKind::Dense, Internal, "{} has copies among experts",
                place.param->spec.name);
      add(rows_of(place, piece), groups_.kv_replica_group(piece.replicas));
    }
  }
  // Each without the gap after it: gaps and neighbours may differ between holders.
  joins = false;
  for (const FlatParam* place : shared_params(params_))
    add({place->begin, place->param->value.shape.elements()},
        groups_.of_stages(place->param->spec.place.stages));
}

// Joins neighbours of one dtype.
void GradReducer::append(std::vector<FlatRange>& ranges, FlatRange range) const {
  const bool joins =
      !ranges.empty() && ranges.back().end() == range.begin &&
      grads_.range(ranges.back().begin, 1).dtype == grads_.range(range.begin, 1).dtype;
  if (joins) {
    ranges.back().count += range.count;
  } else {
    ranges.push_back(range);
  }
}

void GradReducer::plan_norm_ranges() {
  for (const FlatParam& place : params_.flat()) {
    const std::vector<FlatRange> counted = counted_ranges(params_, place);
    for (const FlatRange& range : counted) append(counted_, range);
    for (const FlatRange& range : shards_state() ? counted : owned_ranges(params_, place))
      append(owned_, range);
  }
}

Exec GradReducer::comm_exec(Exec& ex) const {
  return overlaps() ? ex.on_stream(ex.device.comm_stream()) : ex;
}

void GradReducer::begin_step(Exec& ex) {
  ex.stream.wait(reduced_event_);
  grads_.begin_step(ex);
  reduced_.clear();
}

void GradReducer::reduce_section(Exec& ex, const FlatSection& section) {
  Communicator& group = groups_.over(section.group);
  if (group.size() == 1) return;
  const Tensor whole = grads_.range(section.begin, section.count);
  if (shards_state()) {
    const FlatRange shard = section.shard();
    group.reduce_scatter(ex, whole, section.bounds,
                         slice(whole, 0, shard.begin - section.begin, shard.count));
  } else {
    group.all_reduce(ex, whole);
  }
}

void GradReducer::reduce(Exec& ex) {
  if (!streams_buckets()) {
    Exec comm_ex = comm_exec(ex);
    for (const FlatSection& section : params_.sections()) {
      if (!reduced_.contains(section.bucket)) reduce_section(comm_ex, section);
    }
    if (overlaps()) reduced_event_ = comm_ex.stream.record();
  }
  ex.wait("wait for gradients", reduced_event_);
  for (const Sum& sum : sums_)
    sum.over->all_reduce(ex, grads_.range(sum.range.begin, sum.range.count));
}

void GradReducer::begin_bucket_grads(Exec& ex, int bucket) {
  if (streams_buckets())
    ex.wait("wait for gradients",
            cleared_[ParamStore::staging_slot(bucket, grads_.double_buffers())]);
}

// Adds the reduced bucket to the shard and clears its staging memory.
void GradReducer::reduce_staged(Exec& ex, const FlatSection& section) {
  ArenaScope scope(ex.scratch);
  const Tensor whole = grads_.staging(section);
  const FlatRange shard = section.shard();
  const Tensor sum = shard_.bytes() > 0
                         ? tensor_over(shard_.data(), whole.dtype, {shard.count})
                         : ex.scratch.allocate({shard.count}, whole.dtype, "gradients.shard");
  groups_.over(section.group).reduce_scatter(ex, whole, section.bounds, sum);
  if (shard.count > 0) {
    const Tensor kept = reshape(grads_.range(shard.begin, shard.count), {1, shard.count});
    ops::residual_add(ex, {.residual = kept, .delta = reshape(sum, {1, shard.count}), .out = kept});
  }
  ops::fill(ex, {.out = whole, .value = 0});
}

void GradReducer::end_bucket_grads(Exec& ex, int bucket, bool finished) {
  if (!streams_buckets() && !finished) return;
  Exec comm_ex = comm_exec(ex);
  for (const FlatSection& section : params_.sections()) {
    if (section.bucket != bucket) continue;
    if (streams_buckets()) {
      reduce_staged(comm_ex, section);
    } else {
      reduce_section(comm_ex, section);
    }
  }
  reduced_.insert(bucket);
  if (!overlaps()) return;
  reduced_event_ = comm_ex.stream.record();
  cleared_[ParamStore::staging_slot(bucket, grads_.double_buffers())] = reduced_event_;
}

void GradReducer::squared_norm(Exec& ex, Tensor norm_squared) {
  ops::fill(ex, {.out = norm_squared, .value = 0});
  for (const FlatRange& range : counted_)
    ops::squared_norm(ex, {.x = grads_.range(range.begin, range.count), .out = norm_squared});
  if (groups_.world().size() > 1) groups_.world().all_reduce(ex, norm_squared);
}

void GradReducer::local_squared_norm(Exec& ex, const FlatRange& range, Tensor norm_squared) {
  for (const FlatRange& owned : owned_) {
    const FlatRange both = intersection(owned, range);
    if (both.count > 0)
      ops::squared_norm(ex, {.x = grads_.range(both.begin, both.count), .out = norm_squared});
  }
}

}  // namespace bev
