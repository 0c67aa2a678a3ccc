// Gradients to parameters. State lies in flat buffers laid out like the parameters, so an update is
// a few streaming passes over long ranges.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "optim/grad_buffer.h"

namespace bev {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates the parameters as `decision` (ops/update_rule.h) says. Where ranks that share the batch
  // divide the state, each updates its share.
  virtual void step(Exec& ex, ConstTensor decision) = 0;

  // Copies the parameters into the master weights; after the parameters were set from outside.
  void refresh_master(Exec& ex);

  // What is kept of each element besides the parameter, in the order of ranges().
  struct State {
    std::string_view name;  // "master", "adam.m", "adam.v", "sgd.momentum"
    Tensor flat;
  };
  std::vector<State> states() const;

  // A maximal run of what this rank updates of the flat order, all decayed or all not, with
  // gradients of one dtype: as a rule one of matrices and one of vectors.
  struct Range {
    int64_t begin, count;
    int64_t state;  // where it begins in flat states
    bool decay;
    DType grad;
  };
  const std::vector<Range>& ranges() const { return ranges_; }

 protected:
  Optimizer(ParamStore& params, const GradBuffer& grads);

  // A flat state for what this rank updates, zero at first.
  Tensor make_state(StatePrecision precision, const char* purpose);

  Tensor param_range(const Range& r) const;
  Tensor master_range(const Range& r) const;  // absent when the parameters are their own master
  ConstTensor grad_range(const Range& r) const;
  static Tensor state_range(const Tensor& state, const Range& r);

 private:
  // Without the master weights.
  virtual std::vector<State> own_states() const = 0;

  ParamStore& params_;
  const GradBuffer& grads_;
  std::vector<Range> ranges_;
  int64_t elements_ = 0;  // of a state
  std::vector<Buffer> buffers_;
  Tensor master_;
};

// `seed` draws the rounding of short moments.
std::unique_ptr<Optimizer> make_optimizer(const OptimConfig& config, ParamStore& params,
                                          const GradBuffer& grads, uint64_t seed);

}  // namespace bev
