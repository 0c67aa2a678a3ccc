// What ranks have to tell each other about gradients before an update.
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
  // After the last micro-batch: sums the gradients of all ranks that hold the same elements. Where
  // the optimizer's state is divided, a rank gets the sums of its own share only.
  void reduce(Exec& ex);

  bool streams_buckets() const override { return groups_.layout().zero >= 2; }
  void begin_bucket_grads(Exec& ex, int bucket) override;
  // With divided gradients: adds the bucket's sums over the batch to the shares, and empties it.
  // Otherwise: begins to sum what is finished.
  void end_bucket_grads(Exec& ex, int bucket, bool finished) override;
  // Whom to tell of finished buckets; null: nobody.
  GradSink* sink() { return streams_buckets() || overlaps() ? this : nullptr; }

  // norm_squared f64 [1] = the squared norm of the gradient of the whole model, the same on every
  // rank. REQUIRES: reduce() was called.
  void squared_norm(Exec& ex, Tensor norm_squared);
  // Adds the squared norm of that part of the range which counts on this rank. REQUIRES: reduce()
  // was called.
  void local_squared_norm(Exec& ex, const FlatRange& range, Tensor norm_squared);

 private:
  struct Sum {
    FlatRange range;
    Communicator* over;
  };
  void plan_reductions();
  void plan_norm_ranges();
  void count(FlatRange range);
  bool is_divided() const { return groups_.layout().zero > 0; }
  bool overlaps() const {
    return groups_.layout().overlaps_grad_reduce && groups_.data().size() > 1;
  }
  // The work itself, or beside it.
  Exec comm_exec(Exec& ex) const;
  void sum(Exec& ex, const FlatSection& section);
  void reduce_bucket(Exec& ex, const FlatSection& section);

  ParamStore& params_;
  GradBuffer& grads_;
  ProcessGroups& groups_;
  std::vector<Sum> sums_;           // besides those over the batch
  std::vector<FlatRange> counted_;  // in the norm, by this rank
  std::set<int> summed_;            // buckets, in this step
  Buffer share_;                    // of the section that is being passed on beside other work
  std::array<Event, 2> emptied_{};  // of each memory through which gradients pass
  Event exchanged_{};               // the last of what was done beside other work
};

}  // namespace bev
