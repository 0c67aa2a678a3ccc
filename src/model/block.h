// A transformer block. Pre-norm: x + attention(norm(x)), with a context then
// + cross_attention(norm(.), context), then + mlp(norm(.)). Post-norm: norm(x + attention(x)), then
// norm(. + mlp(.)).
#pragma once

#include <optional>

#include "model/attention.h"
#include "model/cross_attention.h"
#include "model/mlp.h"
#include "model/norm.h"

namespace bev {

struct BlockParams {
  struct Cross {
    NormModule::Params norm;
    CrossAttention::Params attention;
  };
  NormModule::Params norm1;
  Attention::Params attention;
  std::optional<Cross> cross;
  NormModule::Params norm2;
  Mlp::Params mlp;
};

// Inputs of a block besides its hidden state.
struct BlockInputs {
  const TextView& text;                  // of the hidden state
  ScoreBias bias{};                      // of self attention
  std::optional<ContextView> context{};  // with cross attention
};

class Block {
 public:
  struct Saved {
    ConstTensor x;  // input of the block
    NormModule::Saved norm1, norm2;
    Tensor normed1, normed2;  // [tokens, width]; absent if they are recomputed
    Attention::Saved attention;
    Tensor sum;   // x + attention
    Tensor sum2;  // post-norm: normed1 + mlp
    Mlp::Saved mlp;
    struct {
      NormModule::Saved norm;
      Tensor normed;  // absent if it is recomputed
      CrossAttention::Saved attention;
      Tensor sum;  // Saved::sum + cross attention
    } cross;
  };

  // `rope`: null without rotation.
  Block(ParamStore& params, const BlockSpec& spec, const RopeTable* rope);

  int bucket() const { return bucket_; }
  bool has_pre_norm() const { return pre_norm_; }
  BlockParams params() const;

  // x, y [tokens, width]. Without y, computes only what backward needs. If no backward follows, y
  // may alias x.
  void forward(Exec& ex, ModelEnv& env, const BlockInputs& in, ConstTensor x, Tensor y,
               Saved& s) const;
  // dx may alias dy. Overwrites dcontext, which is absent without cross attention.
  void backward(Exec& ex, ModelEnv& env, const BlockInputs& in, Gradient dy, GradientTarget dx,
                Tensor dcontext, const Saved& s) const;
  // The gradient of the residual stream is also the gradient of the branch added to it: its sums
  // over tokens are the bias gradient of that branch. The norm whose backward writes dy of this
  // block can add them here (GradientTarget::sums). Absent: backward sums dy itself.
  Tensor output_bias_grad(const ModelEnv& env) const;

 private:
  struct Cross {
    NormModule norm;
    CrossAttention attention;
    DropoutSpec dropout;
  };
  void forward_post_norm(Exec& ex, ModelEnv& env, const BlockInputs& in, ConstTensor x, Tensor y,
                         Saved& s) const;
  void backward_post_norm(Exec& ex, ModelEnv& env, const BlockInputs& in, Gradient dy,
                          GradientTarget dx, const Saved& s) const;
  // True if a branch can be added to the residual directly: no dropout, no reduce-scatter.
  bool can_fuse_residual(const ModelEnv& env) const;

  int bucket_;
  bool pre_norm_, recompute_norms_;
  DropoutSpec attention_dropout_, mlp_dropout_;
  NormModule norm1_;
  Attention attention_;
  std::optional<Cross> cross_;
  NormModule norm2_;
  Mlp mlp_;
};

}  // namespace bev
