#include "model/family/family.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "config/resolve.h"

namespace bev {

namespace {

// The head's matrix is read few times, and the logits of a large vocabulary stay a small part of
// memory.
constexpr int64_t kHostChunk = 256, kGpuChunk = 8192;

bool recomputes(const Config& c, bool kind) {
  return c.recompute.granularity == Recompute::Selective && kind;
}

// Projections whose output is added to the residual stream. The first BERT of Megatron-LM,
// post-norm, scales them with --deep-init only; that of Hugging Face does not scale them.
Init output_init(const Config& c, const ModelShape& m) {
  const bool is_scaled = c.model.norm_placement == NormPlacement::Pre || c.model.deep_init;
  return is_scaled ? Init::scaled_normal(c.model.init_std, m.layers)
                   : Init::normal(c.model.init_std);
}

AttentionSpec attention_spec(const Config& c, const ModelShape& m, int64_t block) {
  AttentionSpec spec{
      .width = m.width,
      .heads = m.heads,
      .kv_heads = m.kv_heads,
      .head_dim = m.head_dim,
      .scale = c.model.scale_attention ? 1 / std::sqrt(static_cast<double>(m.head_dim)) : 1.0,
      .window = c.model.window,
      .qkv_bias = c.model.bias != BiasKind::None,
      .out_bias = c.model.bias == BiasKind::All,
      .recompute_core = recomputes(c, c.recompute.attention),
      .rope = rope_spec(c),
      .dropout = dropout_spec(c, c.model.attention_dropout, block, DropoutSite::Probabilities),
      .init = Init::normal(c.model.init_std),
      .output_init = output_init(c, m)};
  // Each tensor rank sees the gradients of the heads that it holds.
  if (c.model.qk_norm) spec.qk_norm = norm_spec(c, Replica::Sum);
  return spec;
}

MlpSpec mlp_spec(const Config& c, const ModelShape& m) {
  return {.width = m.width,
          .ffn = m.ffn,
          .activation = c.model.activation,
          .bias = c.model.bias == BiasKind::All,
          .recompute_activation = recomputes(c, c.recompute.activation),
          .init = Init::normal(c.model.init_std),
          .output_init = output_init(c, m)};
}

}  // namespace

ModelSpec model_spec(const Config& config) {
  switch (config.model.family) {
    case ModelFamily::Bert: return bert_spec(config);
    case ModelFamily::T5: return t5_spec(config);
    case ModelFamily::Biencoder: return biencoder_spec(config);
    case ModelFamily::Gpt: break;
  }
  return gpt_spec(config);
}

DropoutSpec dropout_spec(const Config& c, double probability, int64_t block, DropoutSite site) {
  const auto seed = static_cast<uint64_t>(c.train.seed);
  return {.probability = probability,
          .key = mix_key(mix_key(mix_key(seed, "dropout"), static_cast<uint64_t>(block)),
                         static_cast<uint64_t>(site))};
}

Replica replica_between_regions(const Config& c) {
  return c.parallel.sequence ? Replica::Sum : Replica::Same;
}

NormSpec norm_spec(const Config& c, Replica tensor) {
  return {.kind = c.model.norm, .eps = c.model.norm_eps, .tensor = tensor};
}

BlockSpec block_spec(const Config& c, const ModelShape& m, int64_t number) {
  const double dropout = c.model.hidden_dropout;
  return {.name = "layers." + std::to_string(number),
          .number = number,
          .norm = norm_spec(c, replica_between_regions(c)),
          .recompute_norms = recomputes(c, c.recompute.norm),
          .attention = attention_spec(c, m, number),
          .mlp = mlp_spec(c, m),
          .attention_dropout = dropout_spec(c, dropout, number, DropoutSite::Attention),
          .mlp_dropout = dropout_spec(c, dropout, number, DropoutSite::Mlp)};
}

TableSpec table_spec(const Config& c, const std::string& name, int64_t rows, int64_t width,
                     Role role) {
  return {.name = name,
          .rows = rows,
          .width = width,
          .role = role,
          .init = Init::normal(c.model.init_std),
          .tensor = replica_between_regions(c)};
}

double smoothing(const Config& c, int64_t padded_vocab) {
  if (c.loss.smoothing == Smoothing::Torch) return c.loss.label_smoothing;
  const auto classes = static_cast<double>(padded_vocab);
  return c.loss.label_smoothing * classes / std::max(classes - 1, 1.0);
}

int64_t head_chunk(const Config& config) {
  if (config.loss.chunk > 0) return config.loss.chunk;
  return config.device.kind == DeviceKind::Cuda ? kGpuChunk : kHostChunk;
}

RecomputeSpec recompute_spec(const RecomputeConfig& c) {
  RecomputeSpec spec{.distribute = c.distribute};
  if (c.granularity != Recompute::Full) return spec;
  const bool uniform = c.method == RecomputeMethod::Uniform;
  spec.blocks = uniform || c.layers == 0 ? -1 : c.layers;
  if (uniform && c.layers > 0) spec.group = c.layers;
  return spec;
}

std::optional<RopeSpec> rope_spec(const Config& config) {
  const ModelConfig& m = config.model;
  const ModelShape shape = resolve_model(config);
  if (shape.rotary_dim == 0) return {};
  return RopeSpec{.dim = shape.rotary_dim,
                  .positions = shape.positions,
                  .base = m.rope_base,
                  .scaling = m.rope_scaling,
                  .factor = m.rope_factor,
                  .low = m.rope_low,
                  .high = m.rope_high,
                  .original_positions = m.rope_original_positions};
}

}  // namespace bev
