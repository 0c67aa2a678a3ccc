// Sums gradients over all ranks that hold the same parameters, and computes their norm.
#pragma once

#include <array>
#include <set>
#include <vector>

#include "optim/grad_buffer.h"
#include "parallel/process_groups.h"
#include "param/grad_sink.h"

namespace bev {

class GradReducer final : public GradSink {
 public:
  // The store must be allocated; all must outlive this.
  GradReducer(ParamStore& params, GradBuffer& grads, ProcessGroups& groups);

  // Before the first micro-batch.
  void begin_step(Exec& ex);
  // After the last micro-batch: sums the gradients of all ranks that hold the same elements. With
  // sharded optimizer state a rank gets the sums of its shards only.
  void reduce(Exec& ex);

  bool streams_buckets() const override { return groups_.layout().zero >= 2; }
  void begin_bucket_grads(Exec& ex, int bucket) override;
  // With sharded gradients: reduce-scatters the bucket, adds the result to the shards and clears
  // the staging memory. Otherwise: starts to reduce finished buckets.
  void end_bucket_grads(Exec& ex, int bucket, bool finished) override;
  // The observer of finished buckets; null if none is needed.
  GradSink* sink() { return streams_buckets() || overlaps() ? this : nullptr; }

  // norm_squared f64 [1] = the squared gradient norm of the whole model, the same on every rank.
  // REQUIRES: reduce() was called.
  void squared_norm(Exec& ex, Tensor norm_squared);
  // Adds the squared norm of the elements of the range that this rank owns and has reduced.
  // REQUIRES: reduce() was called.
  void local_squared_norm(Exec& ex, const FlatRange& range, Tensor norm_squared);

 private:
  struct Sum {
    FlatRange range;
    Communicator* over;
  };
  void plan_reductions();
  void plan_norm_ranges();
  void append(std::vector<FlatRange>& ranges, FlatRange range) const;
  bool shards_state() const { return groups_.layout().zero > 0; }
  bool overlaps() const {
    return groups_.layout().overlaps_grad_reduce && groups_.layout().shards() > 1;
  }
  // The compute stream, or the communication stream if reductions overlap with backward.
  Exec comm_exec(Exec& ex) const;
  void reduce_section(Exec& ex, const FlatSection& section);
  void reduce_staged(Exec& ex, const FlatSection& section);

  ParamStore& params_;
  GradBuffer& grads_;
  ProcessGroups& groups_;
  std::vector<Sum> sums_;           // besides those of the shard groups
  std::vector<FlatRange> owned_;    // reduced here, and owned by this rank among its model replica
  std::vector<FlatRange> counted_;  // in the norm: of the owned ranges those in this rank's shards
  std::set<int> reduced_;           // buckets, in this step
  Buffer shard_;                    // of a section that is reduced on the communication stream
  std::array<Event, 2> cleared_{};  // the staging slots
  Event reduced_event_{};           // the last reduction on the communication stream
};

}  // namespace bev
