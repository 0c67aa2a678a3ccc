#include "optim/grad_reducer.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace bev {

namespace {

// The rows of a piece in the flat order. REQUIRES: the parameter is cut by rows.
FlatRange rows_of(const FlatParam& place, const Piece& piece) {
  const Shape& shape = place.param->value.shape;
  const int64_t columns = shape.elements() / shape[0];
  return {place.begin + piece.local_begin * columns, piece.extent * columns};
}

FlatRange intersection(const FlatRange& a, const FlatRange& b) {
  const int64_t begin = std::max(a.begin, b.begin), end = std::min(a.end(), b.end());
  return {begin, std::max<int64_t>(0, end - begin)};
}

}  // namespace

GradReducer::GradReducer(ParamStore& params, GradBuffer& grads, ProcessGroups& groups)
    : params_(params), grads_(grads), groups_(groups) {
  plan_reductions();
  plan_norm_ranges();
  if (streams_buckets() && overlaps())
    share_ = Buffer(params.device(), grads.max_shard_bytes(), "gradient bucket");
}

void GradReducer::plan_reductions() {
  const auto add_run = [&](FlatRange range, Communicator& over) {
    if (range.count == 0) return;
    // Neighbours in one message, gaps and all.
    if (!sums_.empty() && sums_.back().over == &over && sums_.back().range.end() == range.begin) {
      sums_.back().range.count += range.count;
    } else {
      sums_.push_back({range, &over});
    }
  };
  // Over other axes a rank sums no more than its share.
  const auto add = [&](FlatRange range, Communicator& over) {
    if (over.size() == 1) return;
    if (!is_divided()) {
      add_run(range, over);
    } else {
      for (const FlatSection& section : params_.sections())
        add_run(intersection(range, params_.shard_of(section)), over);
    }
  };
  for (const FlatParam& place : params_.flat()) {
    const ParamSpec& spec = place.param->spec;
    if (sums_over(spec, Axis::Tensor)) add({place.begin, place.count}, groups_.tensor());
    // Without the gap behind it, which the other end may not have.
    const FlatRange elements{place.begin, place.param->value.shape.elements()};
    if (sums_over(spec, Axis::Pipeline)) add(elements, groups_.embedding_group());
    for (const Piece& piece : place.param->pieces) {
      if (piece.holders > 1) add(rows_of(place, piece), groups_.kv_replica_group(piece.holders));
    }
  }
}

void GradReducer::count(FlatRange range) {
  if (range.count == 0) return;
  const bool joins =
      !counted_.empty() && counted_.back().end() == range.begin &&
      grads_.range(counted_.back().begin, 1).dtype == grads_.range(range.begin, 1).dtype;
  if (joins) {
    counted_.back().count += range.count;
  } else {
    counted_.push_back(range);
  }
}

void GradReducer::plan_norm_ranges() {
  // Whether it is this rank or another that shares the batch is decided below, by elements.
  const ParallelLayout& layout = groups_.layout();
  const RankGrid model{{Axis::Tensor, layout.tensor}, {Axis::Pipeline, layout.pipeline}};
  const int rank = groups_.model_parallel().rank();
  std::vector<FlatRange> owned;
  for (const FlatParam& place : params_.flat()) {
    const std::vector<Piece> pieces = owned_pieces(place.param->spec, model, rank);
    if (pieces.size() == place.param->pieces.size()) {
      owned.push_back({place.begin, place.count});
    } else {
      for (const Piece& piece : pieces) owned.push_back(rows_of(place, piece));
    }
  }
  for (const FlatRange& section : params_.sections()) {
    const FlatRange here = is_divided() ? params_.shard_of(section) : section;
    for (const FlatRange& range : owned) count(intersection(range, here));
  }
}

Exec GradReducer::comm_exec(Exec& ex) const {
  return overlaps() ? ex.on_stream(ex.device.comm_stream()) : ex;
}

void GradReducer::begin_step(Exec& ex) {
  ex.stream.wait(exchanged_);
  grads_.begin_step(ex);
  summed_.clear();
}

void GradReducer::sum(Exec& ex, const FlatSection& section) {
  const Tensor whole = grads_.range(section.begin, section.count);
  if (is_divided()) {
    const FlatRange share = params_.shard_of(section);
    groups_.data().reduce_scatter(ex, whole, grads_.range(share.begin, share.count));
  } else {
    groups_.data().all_reduce(ex, whole);
  }
}

void GradReducer::reduce(Exec& ex) {
  if (groups_.data().size() > 1 && !streams_buckets()) {
    Exec beside = comm_exec(ex);
    for (const FlatSection& section : params_.sections()) {
      if (!summed_.contains(section.bucket)) sum(beside, section);
    }
    if (overlaps()) exchanged_ = beside.stream.record();
  }
  ex.wait("wait for gradients", exchanged_);
  for (const Sum& sum : sums_)
    sum.over->all_reduce(ex, grads_.range(sum.range.begin, sum.range.count));
}

void GradReducer::begin_bucket_grads(Exec& ex, int bucket) {
  if (streams_buckets())
    ex.wait("wait for gradients",
            emptied_[ParamStore::staging_slot(bucket, grads_.double_buffers())]);
}

void GradReducer::reduce_bucket(Exec& ex, const FlatSection& section) {
  ArenaScope scope(ex.scratch);
  const Tensor whole = grads_.staging(section);
  const FlatRange share = params_.shard_of(section);
  const Tensor sum = share_.bytes() > 0
                         ? tensor_over(share_.data(), whole.dtype, {share.count})
                         : ex.scratch.allocate({share.count}, whole.dtype, "gradients.share");
  groups_.data().reduce_scatter(ex, whole, sum);
  const Tensor kept = grads_.range(share.begin, share.count);
  const Shape row{1, share.count};
  ops::residual_add(
      ex, {.residual = reshape(kept, row), .delta = reshape(sum, row), .out = reshape(kept, row)});
  ops::fill(ex, {.out = whole, .value = 0});
}

void GradReducer::end_bucket_grads(Exec& ex, int bucket, bool finished) {
  if (!streams_buckets() && !finished) return;
  Exec beside = comm_exec(ex);
  for (const FlatSection& section : params_.sections()) {
    if (section.bucket != bucket) continue;
    if (streams_buckets()) {
      reduce_bucket(beside, section);
    } else {
      sum(beside, section);
    }
  }
  summed_.insert(bucket);
  if (!overlaps()) return;
  exchanged_ = beside.stream.record();
  emptied_[ParamStore::staging_slot(bucket, grads_.double_buffers())] = exchanged_;
}

void GradReducer::squared_norm(Exec& ex, Tensor norm_squared) {
  ops::fill(ex, {.out = norm_squared, .value = 0});
  for (const FlatRange& range : counted_)
    ops::squared_norm(ex, {.x = grads_.range(range.begin, range.count), .out = norm_squared});
  Communicator& all = is_divided() ? groups_.world() : groups_.model_parallel();
  if (all.size() > 1) all.all_reduce(ex, norm_squared);
}

void GradReducer::local_squared_norm(Exec& ex, const FlatRange& range, Tensor norm_squared) {
  for (const FlatRange& counted : counted_) {
    const FlatRange both = intersection(counted, range);
    if (both.count > 0)
      ops::squared_norm(ex, {.x = grads_.range(both.begin, both.count), .out = norm_squared});
  }
}

}  // namespace bev
