// Gradients to parameters. State lies in flat buffers laid out like the parameters, so an update is
// a few streaming passes over long ranges.
#pragma once

#include <memory>
#include <vector>

#include "config/config.h"
#include "optim/grad_buffer.h"

namespace bev {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates the parameters as `decision` (ops/update_rule.h) says.
  virtual void step(Exec& ex, ConstTensor decision) = 0;

  // Copies the parameters into the master weights; after the parameters were set from outside.
  void refresh_master(Exec& ex);

 protected:
  // A maximal run of the flat order, all decayed or all not, with gradients of one dtype: as a rule
  // one of matrices and one of vectors.
  struct Range {
    int64_t begin, count;
    bool decay;
    DType grad;
  };
  Optimizer(ParamStore& params, const GradBuffer& grads);

  // A flat state like the parameters, zero at first.
  Tensor make_state(StatePrecision precision, const char* purpose);

  Tensor param_range(const Range& r) const;
  Tensor master_range(const Range& r) const;  // absent when the parameters are their own master
  ConstTensor grad_range(const Range& r) const;
  static Tensor range_of(const Tensor& flat, const Range& r);

  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  ParamStore& params_;
  const GradBuffer& grads_;
  std::vector<Range> ranges_;
  std::vector<Buffer> buffers_;
  Tensor values_, master_;
};

// `seed` draws the rounding of short moments.
std::unique_ptr<Optimizer> make_optimizer(const OptimConfig& config, ParamStore& params,
                                          const GradBuffer& grads, uint64_t seed);

}  // namespace bev
