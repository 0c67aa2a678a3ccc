// Gradients to parameters. State lies in flat buffers laid out like the parameters, so an update is
// a few streaming passes over long ranges.
#pragma once

#include <memory>
#include <vector>

#include "config/config.h"
#include "optim/grad_buffer.h"

namespace bev {

struct StepInfo {
  int64_t step;  // counts applied updates from 1
  double lr, weight_decay;
  ConstTensor control;  // f64 [2]: factor of the gradient, whether the update is applied
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual void step(Exec& ex, const StepInfo& info) = 0;

  // Copies the parameters into the master weights; after the parameters were set from outside.
  void refresh_master(Exec& ex);

 protected:
  // A maximal run of parameters that are all decayed or all not.
  struct Range {
    int64_t begin, count;
    bool decay;
  };
  Optimizer(ParamStore& params, const GradBuffer& grads);

  // Flat state of the accumulation type, zero at first. `count` tensors after each other.
  std::vector<Tensor> make_state(int count, const char* purpose);

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

std::unique_ptr<Optimizer> make_optimizer(const OptimConfig& config, ParamStore& params,
                                          const GradBuffer& grads);

}  // namespace bev
