// Multi-head attention with grouped keys and values: projections, optional QK norm and rotation
// around an attention core.
#pragma once

#include <optional>
#include <string>

#include "data/batch.h"
#include "model/linear.h"
#include "model/norm.h"
#include "model/rope_table.h"

namespace bev {

class Attention {
 public:
  struct Saved {
    Tensor qkv;   // [tokens, (heads + 2 kv_heads) * head_dim]; rotated unless there is a QK norm
    Tensor q, k;  // with a QK norm: normalised and rotated [tokens, heads, head_dim]
    NormModule::Saved q_norm, k_norm;
    Tensor out;  // [tokens, heads, head_dim]; absent when it is recomputed
    Tensor lse;  // [sequences, heads, length]; absent with out
  };

  Attention(ParamStore& params, const std::string& name, const ModelSpec& b, int64_t layer,
            const RopeTable& rope);

  // x, y [tokens, width]. `residual`, may be absent, is added to y where
  // env.tensor.rows_unchanged(). `norm`, may be absent, is that of x where it is not normalised
  // yet.
  void forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x,
               ConstTensor residual, Tensor y, Saved& s, const ops::FusedNorm& norm = {}) const;
  // dy_summed: who wrote dy has added its sums over tokens to output_bias_grad().
  void backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, ConstTensor dy,
                bool dy_summed, Tensor dx, const Saved& s);
  Tensor output_bias_grad() const { return out_.bias_grad(); }  // absent without a bias

 private:
  struct Heads {
    ConstTensor q, k, v;
  };
  Heads heads_of(const Saved& s) const;
  ops::AttentionInput input(const ModelEnv& env, const MicroBatch& micro, const Heads& heads) const;
  void rotate(Exec& ex, const MicroBatch& micro, Tensor x, bool inverse) const;

  int64_t layer_, head_dim_;
  int64_t window_;
  double dropout_;
  uint64_t dropout_key_;
  bool recompute_;  // the core's output is computed again instead of kept
  const RopeTable& rope_;
  Linear qkv_;
  std::optional<NormModule> q_norm_, k_norm_;
  Linear out_;
  int64_t heads_, kv_heads_;  // held here
};

}  // namespace bev
