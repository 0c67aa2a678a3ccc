#include "infer/decode_block.h"

#include "ops/elementwise.h"
#include "ops/rope.h"

namespace bev {

namespace {

using ops::Epilogue;
using ops::Transpose;

ops::FusedNorm fused_norm(const NormSpec& spec, const NormModule::Params& params) {
  return {.kind = spec.kind,
          .weight = params.weight.value,
          .bias = params.bias_value(),
          .eps = spec.eps};
}

// y = activation(norm(x) W^T + b), for the outputs of this rank.
void column_gemm(Exec& ex, const TensorRegion& region, const LinearParams& params,
                 const ops::FusedNorm& norm, ConstTensor x, Tensor y,
                 std::optional<Activation> activation = {}) {
  ArenaScope scope(ex.scratch);
  const bool bias = params.bias != nullptr;
  Epilogue epilogue = bias ? Epilogue::Bias : Epilogue::None;
  if (activation) epilogue = bias ? Epilogue::BiasActivate : Epilogue::Activate;
  ops::decode_gemm(ex, {.gemm = {.a = region.enter(ex, x, ex.scratch),
                                 .b = params.weight.value,
                                 .tb = Transpose::Yes,
                                 .out = y,
                                 .epilogue = epilogue,
                                 .bias = params.bias_value(),
                                 .activation = activation.value_or(Activation{})},
                        .norm = norm});
}

// y = x W^T + b + residual, summed over the region.
void row_gemm(Exec& ex, const TensorRegion& region, const LinearParams& params, ConstTensor x,
              ConstTensor residual, Tensor y) {
  ArenaScope scope(ex.scratch);
  const ConstTensor bias = region.on_one_member(params.bias_value());
  const Tensor partial = region.partial_buffer(ex, y);
  ops::decode_gemm(ex, {.gemm = {.a = x,
                                 .b = params.weight.value,
                                 .tb = Transpose::Yes,
                                 .out = partial,
                                 .addend = region.on_one_member(residual),
                                 .epilogue = bias.present() ? Epilogue::Bias : Epilogue::None,
                                 .bias = bias}});
  region.leave(ex, partial, y);
}

// The norm of each head, in ex.keep.
Tensor normed_heads(Exec& ex, const NormSpec& spec, const NormModule::Params& params, ConstTensor x,
                    const char* name) {
  const Shape rows{x.shape[0] * x.shape[1]};
  const DType sums = accumulation_of(x.dtype);
  const Tensor y = ex.keep.allocate(x.shape, x.dtype, name);
  const bool has_mean = spec.kind == NormKind::LayerNorm;
  const Tensor mean = has_mean ? ex.keep.allocate(rows, sums, "norm.mean") : Tensor{};
  ops::norm(ex, {.kind = spec.kind,
                 .x = x,
                 .weight = params.weight.value,
                 .bias = params.bias_value(),
                 .eps = spec.eps,
                 .y = y,
                 .mean = mean,
                 .rstd = ex.keep.allocate(rows, sums, "norm.rstd")});
  return y;
}

void rotate(Exec& ex, const RopeTable* rope, const TextView& micro, Tensor heads) {
  if (rope == nullptr) return;
  ops::rope(ex,
            {.x = heads, .positions = micro.positions, .cosine = rope->cosine, .sine = rope->sine});
}

}  // namespace

DecodeBlock::DecodeBlock(const BlockSpec& spec, const BlockParams& params)
    : spec_(spec),
      params_(params),
      heads_(
          div_exact(params.attention.qkv.weight.pieces[0].logical.rows, spec.attention.head_dim)),
      kv_heads_(
          div_exact(params.attention.qkv.weight.pieces[1].logical.rows, spec.attention.head_dim)) {}

void DecodeBlock::forward(Exec& ex, const Borders& borders, const DecodeInputs& in, ConstTensor x,
                          Tensor y) const {
  ArenaScope kept(ex.keep);
  Tensor sum = ex.keep.allocate(x.shape, x.dtype, "block.sum");
  attention(ex, borders, in, x, sum);
  if (in.cross != nullptr) {
    const Tensor attended = sum;
    sum = ex.keep.allocate(x.shape, x.dtype, "block.cross_sum");
    cross_attention(ex, borders, *in.cross, attended, sum);
  }
  mlp(ex, borders.tensor, sum, y);
}

void DecodeBlock::attention(Exec& ex, const Borders& borders, const DecodeInputs& in, ConstTensor x,
                            Tensor sum) const {
  const TextView& micro = in.micro;
  const AttentionSpec& spec = spec_.attention;
  const Attention::Params& params = params_.attention;
  const int64_t tokens = x.rows(), d = spec.head_dim;
  const Tensor qkv =
      ex.keep.allocate({tokens, params.qkv.weight.value.shape[0]}, x.dtype, "attention.qkv");
  column_gemm(ex, borders.tensor, params.qkv, fused_norm(spec_.norm, params_.norm1), x, qkv);

  Tensor q = heads_at(qkv, 0, heads_, d), k = heads_at(qkv, heads_, kv_heads_, d);
  if (spec.qk_norm) {
    q = normed_heads(ex, *spec.qk_norm, *params.q_norm, q, "attention.q");
    k = normed_heads(ex, *spec.qk_norm, *params.k_norm, k, "attention.k");
    rotate(ex, params.rope, micro, q);
    rotate(ex, params.rope, micro, k);
  } else {
    // Queries and keys are adjacent: one pass rotates both.
    rotate(ex, params.rope, micro, heads_at(qkv, 0, heads_ + kv_heads_, d));
  }

  const Tensor out = ex.keep.allocate({tokens, heads_, d}, x.dtype, "attention.out");
  const Tensor lse = ex.keep.allocate({micro.sequences, heads_, micro.length},
                                      accumulation_of(x.dtype), "attention.lse");
  borders.attention.forward(ex, spec_.number,
                            {.q = q,
                             .k = k,
                             .v = heads_at(qkv, heads_ + kv_heads_, kv_heads_, d),
                             .sequences = micro.sequences,
                             .scale = spec.scale,
                             .mask = {.causal = spec.causal,
                                      .window = spec.window,
                                      .document_start = micro.document_start,
                                      .query_lengths = micro.lengths,
                                      .key_lengths = micro.lengths},
                             .bias = in.bias},
                            out, lse);
  row_gemm(ex, borders.tensor, params.out, heads_as_rows(out), x, sum);
}

void DecodeBlock::cross_attention(Exec& ex, const Borders& borders,
                                  const CachedCrossAttention& cross, ConstTensor x,
                                  Tensor sum) const {
  const CrossAttention::Params& params = params_.cross->attention;
  const int64_t d = spec_.cross->head_dim, outputs = params.q.weight.value.shape[0];
  const Tensor q = ex.keep.allocate({x.rows(), outputs}, x.dtype, "cross.q");
  column_gemm(ex, borders.tensor, params.q, fused_norm(spec_.norm, params_.cross->norm), x, q);
  const Tensor out = ex.keep.allocate({x.rows(), outputs / d, d}, x.dtype, "cross.out");
  cross.attend(ex, spec_.number, split_last(q, d), spec_.cross->scale, out);
  row_gemm(ex, borders.tensor, params.out, heads_as_rows(out), x, sum);
}

void DecodeBlock::cache_context(Exec& ex, const Borders& borders, ConstTensor context,
                                const CachedCrossAttention& cross) const {
  ArenaScope kept(ex.keep);
  const LinearParams& params = params_.cross->attention.kv;
  const int64_t d = spec_.cross->head_dim, outputs = params.weight.value.shape[0];
  const int64_t heads = outputs / (2 * d);
  const Tensor kv = ex.keep.allocate({context.rows(), outputs}, context.dtype, "cross.kv");
  column_gemm(ex, borders.tensor, params, {}, context, kv);
  cross.write(ex, spec_.number, heads_at(kv, 0, heads, d), heads_at(kv, heads, heads, d));
}

void DecodeBlock::mlp(Exec& ex, const TensorRegion& region, ConstTensor sum, Tensor y) const {
  const Mlp::Params& params = params_.mlp;
  const Activation activation = spec_.mlp.activation;
  const ops::FusedNorm norm = fused_norm(spec_.norm, params_.norm2);
  const int64_t outputs = params.up.weight.value.shape[0];
  Tensor act;
  if (is_gated(activation)) {
    const Tensor up = ex.keep.allocate({sum.rows(), outputs}, sum.dtype, "mlp.up");
    act = ex.keep.allocate({sum.rows(), outputs / 2}, sum.dtype, "mlp.act");
    column_gemm(ex, region, params.up, norm, sum, up);
    ops::activate(ex, {.activation = activation, .x = up, .y = act});
  } else {
    act = ex.keep.allocate({sum.rows(), outputs}, sum.dtype, "mlp.act");
    column_gemm(ex, region, params.up, norm, sum, act, activation);
  }
  row_gemm(ex, region, params.down, act, sum, y);
}

}  // namespace bev
