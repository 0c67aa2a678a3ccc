// What ranks have to tell each other about gradients before an update.
#pragma once

#include <array>
#include <set>
#include <vector>

#include "model/env.h"
#include "optim/grad_buffer.h"
#include "parallel/process_groups.h"

namespace bev {

class GradReducer final : public GradSink {
 public:
  // The store must be allocated; all must outlive this.
  GradReducer(ParamStore& params, GradBuffer& grads, Groups& groups);

  // Before the first micro-batch.
  void begin_step(Exec& ex);
  // After the last micro-batch: sums the gradients of all ranks that hold the same elements. Where
  // the optimizer's state is divided, a rank gets the sums of its own share only.
  void reduce(Exec& ex);

  bool is_passed_through() const override { return groups_.layout().zero >= 2; }
  void bucket_begins(Exec& ex, int bucket) override;
  // With divided gradients: adds the bucket's sums over the batch to the shares, and empties it.
  // Otherwise: begins to sum what is finished.
  void bucket_done(Exec& ex, int bucket, bool finished) override;
  // Whom to tell of finished buckets; null: nobody.
  GradSink* sink() { return is_passed_through() || overlaps() ? this : nullptr; }

  // norm_squared f64 [1] = the squared norm of the gradient of the whole model, the same on every
  // rank. REQUIRES: reduce() was called.
  void squared_norm(Exec& ex, Tensor norm_squared);
  // Adds the squared norm of that part of the range which counts on this rank. REQUIRES: reduce()
  // was called.
  void squared_norm_here(Exec& ex, const FlatRange& range, Tensor norm_squared);

 private:
  struct Sum {
    FlatRange range;
    Communicator* over;
  };
  void find_sums();
  void find_counted();
  void count(FlatRange range);
  bool is_divided() const { return groups_.layout().zero > 0; }
  bool overlaps() const { return groups_.layout().overlaps_gradients && groups_.data().size() > 1; }
  // The work itself, or beside it.
  Exec exchange(Exec& ex) const;
  void sum(Exec& ex, const FlatSection& section);
  void pass_on(Exec& ex, const FlatSection& section);

  ParamStore& params_;
  GradBuffer& grads_;
  Groups& groups_;
  std::vector<Sum> sums_;           // besides those over the batch
  std::vector<FlatRange> counted_;  // in the norm, by this rank
  std::set<int> summed_;            // buckets, in this step
  Buffer share_;                    // of the section that is being passed on beside other work
  std::array<Event, 2> emptied_{};  // of each memory through which gradients pass
  Event exchanged_{};               // the last of what was done beside other work
};

}  // namespace bev
