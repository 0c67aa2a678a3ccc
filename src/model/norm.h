// A normalisation with its parameters.
#pragma once

#include <string>

#include "model/env.h"
#include "model/model_spec.h"
#include "ops/norm.h"

namespace bev {

class NormModule {
 public:
  struct Saved {
    Tensor mean, rstd;  // [rows]; mean is absent for RMS norm
  };

  // `width` is the extent of the normalised dim; `replica`: how tensor ranks combine the gradients.
  NormModule(ParamStore& params, const std::string& name, const ModelSpec& b, int64_t width,
             Replica replica);

  int bucket() const { return weight_.bucket; }

  void forward(Exec& ex, ConstTensor x, Tensor y, Saved& saved) const;
  // sum = residual + dropout(delta), y = norm(sum)
  void forward_residual(Exec& ex, ConstTensor residual, ConstTensor delta,
                        const ops::Dropout& dropout, Tensor sum, Tensor y, Saved& saved) const;
  // For GEMMs whose operand is normalised on the way.
  ops::FusedNorm fused() const {
    return {.kind = kind_, .weight = weight_.value, .bias = bias(), .eps = eps_};
  }
  // y again, bit for bit, without touching what forward saved.
  void recompute(Exec& ex, ConstTensor x, Tensor y) const;
  // dx = gradient through the norm [+ dresidual]; its sums over rows are added to dx_sums, which
  // may be absent.
  void backward(Exec& ex, ConstTensor dy, ConstTensor x, const Saved& saved, ConstTensor dresidual,
                Tensor dx, Tensor dx_sums = {});

 private:
  Saved statistics(Arena& arena, const ConstTensor& x) const;
  ConstTensor bias() const { return bias_ != nullptr ? ConstTensor(bias_->value) : ConstTensor{}; }

  NormKind kind_;
  double eps_;
  Param& weight_;
  Param* bias_;
};

}  // namespace bev
