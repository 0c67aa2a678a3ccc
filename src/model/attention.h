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

// Heads [first, first + count) of rows of adjacent heads, as [tokens, heads, head_dim].
template <class T>
T heads_at(const T& rows, int64_t first, int64_t count, int64_t head_dim) {
  return split_last(slice(rows, 1, first * head_dim, count * head_dim), head_dim);
}

// [tokens, heads, head_dim] without gaps, as [tokens, heads * head_dim].
template <class T>
T heads_as_rows(const T& t) {
  return reshape(t, {t.shape[0], t.shape[1] * t.shape[2]});
}

// Added to the scores: [local heads, length, length], optional.
struct ScoreBias {
  ConstTensor values{};
  Tensor gradient{};  // backward adds to it
};

// The result of the attention core, for backward.
struct CoreOutput {
  Tensor out;  // [queries, heads, head_dim]
  Tensor lse;  // [sequences, heads, queries of one sequence]
};
CoreOutput run_core(Exec& ex, ModelEnv& env, int64_t layer, const ops::AttentionInput& in,
                    Arena& out_arena, Arena& lse_arena);

class Attention {
 public:
  struct Saved {
    Tensor qkv;   // [tokens, (heads + 2 kv_heads) * head_dim]; rotated unless there is a QK norm
    Tensor q, k;  // with a QK norm: normalised and rotated [tokens, heads, head_dim]
    NormModule::Saved q_norm, k_norm;
    CoreOutput core;  // absent if it is recomputed
  };
  struct Params {
    const LinearParams &qkv, &out;
    std::optional<NormModule::Params> q_norm, k_norm;
    const RopeTable* rope;  // null without rotation
  };

  // `layer`: of the model. `rope`: null without rotation.
  Attention(ParamStore& params, const std::string& name, const AttentionSpec& spec, int64_t layer,
            const RopeTable* rope);

  Params params() const;

  // x, y [rows, width]. `residual`, optional, is added to y.
  void forward(Exec& ex, ModelEnv& env, const TextView& text, const ScoreBias& bias, ConstTensor x,
               ConstTensor residual, Tensor y, Saved& s) const;
  void backward(Exec& ex, ModelEnv& env, const TextView& text, const ScoreBias& bias, Gradient dy,
                ConstTensor x, Tensor dx, const Saved& s) const;

 private:
  struct Heads {
    ConstTensor q, k, v;
  };
  Heads heads_of(const Saved& s) const;
  ops::AttentionInput input(const ModelEnv& env, const TextView& text, const ScoreBias& bias,
                            const Heads& heads) const;
  void rotate(Exec& ex, const TextView& text, Tensor x, bool inverse) const;

  int64_t layer_, head_dim_, window_;
  double scale_;
  bool causal_, recompute_;
  DropoutSpec dropout_;
  const RopeTable* rope_;
  ColumnLinear qkv_;
  RowLinear out_;
  int64_t heads_, kv_heads_;  // local ones
  std::optional<NormModule> q_norm_, k_norm_;
};

}  // namespace bev
