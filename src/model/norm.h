// LayerNorm or RMS norm with its parameters.
#pragma once

#include <string>

#include "model/env.h"
#include "ops/norm.h"

namespace bev {

class NormModule {
 public:
  struct Saved {
    Tensor mean, rstd;  // [rows]; mean is absent for RMS norm
  };
  struct Params {
    const Param& weight;  // [width]
    const Param* bias;    // [width], optional

    ConstTensor bias_value() const {
      return bias != nullptr ? ConstTensor(bias->value) : ConstTensor{};
    }
  };

  // `width`: the extent of the normalised dim.
  NormModule(ParamStore& params, const std::string& name, int64_t width, const NormSpec& spec);

  int bucket() const { return weight_.bucket; }
  Params params() const { return {weight_, bias_}; }

  void forward(Exec& ex, ConstTensor x, Tensor y, Saved& saved) const;
  // sum = residual + dropout(delta), y = norm(sum)
  void forward_residual(Exec& ex, ConstTensor residual, ConstTensor delta,
                        const ops::Dropout& dropout, Tensor sum, Tensor y, Saved& saved) const;
  // y again, bit for bit; leaves the saved statistics alone.
  void recompute(Exec& ex, ConstTensor x, Tensor y) const;
  // dx = gradient through the norm [+ dresidual].
  void backward(Exec& ex, ConstTensor dy, ConstTensor x, const Saved& saved, ConstTensor dresidual,
                GradientTarget dx) const;

 private:
  Saved statistics(Arena& arena, const ConstTensor& x) const;

  NormKind kind_;
  double eps_;
  Param& weight_;
  Param* bias_;
};

}  // namespace bev
