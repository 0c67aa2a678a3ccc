// What ranks have to tell each other about gradients before an update.
#pragma once

#include <vector>

#include "model/env.h"
#include "optim/grad_buffer.h"
#include "parallel/groups.h"

namespace bev {

class GradReducer final : public GradSink {
 public:
  // The store must be allocated; all must outlive this.
  GradReducer(ParamStore& params, const GradBuffer& grads, Groups& groups);

  // After the last micro-batch: sums the gradients of all ranks that hold the same elements. Where
  // the optimizer's state is divided, a rank gets the sums of its own share only.
  void reduce(Exec& ex);

  // With divided gradients: adds the bucket's sums over the batch to the shares, and empties it.
  void bucket_done(Exec& ex, int bucket) override;
  // Whom to tell of finished buckets; null: nobody.
  GradSink* sink() { return groups_.layout().zero >= 2 ? this : nullptr; }

  // norm_squared f64 [1] = the squared norm of the gradient of the whole model, the same on every
  // rank. REQUIRES: reduce() was called.
  void squared_norm(Exec& ex, Tensor norm_squared);

 private:
  struct Sum {
    FlatRange range;
    Communicator* over;
  };
  void find_sums();
  void find_counted();
  void count(FlatRange range);
  bool is_divided() const;  // over the ranks that share the batch

  ParamStore& params_;
  const GradBuffer& grads_;
  Groups& groups_;
  std::vector<Sum> sums_;           // besides those over the batch
  std::vector<FlatRange> counted_;  // in the norm, by this rank
};

}  // namespace bev
