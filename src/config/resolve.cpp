#include "config/resolve.h"

#include <algorithm>

#include "base/format.h"
#include "base/integer.h"
#include "config/parse/notation.h"

namespace bev {

int64_t padded_vocab(int64_t vocab, int64_t multiple, int64_t tensor_ranks) {
  return round_up(vocab, multiple * tensor_ranks);
}

int64_t default_ffn(int64_t width, bool gated) {
  // 4 x width in two matrices is 8/3 x width in three.
  return gated ? 8 * width / 3 / 64 * 64 : 4 * width;
}

ModelShape resolve_model(const Config& config) {
  const ModelConfig& m = config.model;
  ModelShape s{};
  s.layers = m.layers;
  if (m.family == ModelFamily::T5)
    s.decoder_layers = m.decoder_layers > 0 ? m.decoder_layers : m.layers;
  s.width = m.width;
  s.heads = m.heads;
  s.kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads;
  s.head_dim = m.head_dim > 0 ? m.head_dim : div_exact(m.width, m.heads);
  s.ffn = m.ffn > 0 ? m.ffn : default_ffn(m.width, is_gated(m.activation));
  s.vocab = m.vocab;
  s.padded_vocab = padded_vocab(m.vocab, m.vocab_multiple, config.parallel.tensor);
  s.positions =
      m.positions > 0 ? m.positions : std::max(config.train.sequence, decoder_sequence(config));
  if (m.position == PositionKind::Rope)
    s.rotary_dim = static_cast<int64_t>(static_cast<double>(s.head_dim) * m.rope_fraction);
  return s;
}

std::string both_sides(int64_t first, int64_t second) {
  return second > 0 ? format("({} + {})", first, second) : format("{}", first);
}

int64_t decoder_sequence(const Config& config) {
  if (config.model.family != ModelFamily::T5) return 0;
  const TrainConfig& t = config.train;
  return t.decoder_sequence > 0 ? t.decoder_sequence : t.sequence;
}

int64_t decoder_stage(const Config& config) {
  const int64_t stages = config.parallel.pipeline * pipeline_chunks(config);
  if (config.model.family != ModelFamily::T5 || stages == 1) return 0;
  if (config.parallel.decoder_stage > 0) return config.parallel.decoder_stage;
  // Multiplications of a block, without attention scores.
  const ModelShape m = resolve_model(config);
  const int64_t heads = m.heads * m.head_dim, kv_heads = m.kv_heads * m.head_dim;
  const int64_t attention = m.width * 2 * (heads + kv_heads);
  const int64_t mlp = m.width * m.ffn * (is_gated(config.model.activation) ? 3 : 2);
  const int64_t encoder = config.train.sequence * (attention + mlp);
  const int64_t decoder = decoder_sequence(config) * (attention + m.width * 2 * heads + mlp) +
                          config.train.sequence * m.width * 2 * kv_heads;
  const int64_t head = decoder_sequence(config) * m.width * m.padded_vocab;
  const auto slowest = [&](int64_t split) {
    return std::max(div_ceil(m.layers, split) * encoder,
                    div_ceil(m.decoder_layers, stages - split) * decoder + head);
  };
  int64_t best = 0;
  for (int64_t split = 1; split < stages; ++split) {
    const bool fits = split <= m.layers && stages - split <= m.decoder_layers;
    if (fits && (best == 0 || slowest(split) < slowest(best))) best = split;
  }
  return best;
}

int64_t data_ranks(const Config& config) {
  const ParallelConfig& p = config.parallel;
  return div_exact(p.ranks, p.tensor * p.context * p.pipeline);
}

int64_t compared_contexts(const Config& config) {
  return config.train.micro_batch * data_ranks(config);
}

int64_t pipeline_chunks(const Config& config) {
  const ParallelConfig& p = config.parallel;
  if (p.chunk_layers == 0) return p.chunks;
  return div_exact(pipeline_blocks(config.model), p.pipeline * p.chunk_layers);
}

int64_t pipeline_blocks(const ModelConfig& model) {
  const bool has_two = model.family == ModelFamily::Biencoder && !model.shared_towers;
  return has_two ? 2 * model.layers : model.layers;
}

std::vector<int64_t> top_k_of(const LogConfig& log) {
  std::vector<int64_t> numbers;
  for (const std::string& text : log.top_k)
    if (const auto number = parse_integer(text); number && *number > 0) numbers.push_back(*number);
  return numbers;
}

BatchShape resolve_batch(const Config& config) {
  const TrainConfig& t = config.train;
  const int64_t together = t.micro_batch * data_ranks(config);
  const int64_t global = t.global_batch > 0 ? t.global_batch : together;
  const bool is_biencoder = config.model.family == ModelFamily::Biencoder;
  return {.sequence = t.sequence,
          .micro_batch = t.micro_batch,
          .global_batch = global,
          .micros = div_exact(global, together),
          .second_sequence = is_biencoder ? t.sequence : decoder_sequence(config)};
}

BatchSchedule resolve_batch_schedule(const Config& config) {
  const TrainConfig& t = config.train;
  const int64_t batch = resolve_batch(config).global_batch;
  if (t.ramp_start == 0) return BatchSchedule(batch);
  return {t.ramp_start, t.ramp_increment, t.ramp_samples, batch};
}

int64_t resolve_iterations(const Config& config) {
  // The last partial batch of a training length in samples is dropped, as in Megatron.
  if (config.train.samples > 0)
    return resolve_batch_schedule(config).steps_in(config.train.samples);
  return config.train.iterations;
}

DType resolve_dtype(const Config& config) {
  switch (config.device.precision) {
    case Precision::F64: return DType::f64;
    case Precision::F32: return DType::f32;
    case Precision::Bf16: return DType::bf16;
    case Precision::F16: return DType::f16;
    case Precision::Auto: break;
  }
  switch (config.device.kind) {
    case DeviceKind::Reference: return DType::f64;
    case DeviceKind::Cuda: return DType::bf16;
    case DeviceKind::Auto:
    case DeviceKind::Cpu:
    case DeviceKind::Null: break;
  }
  return DType::f32;
}

}  // namespace bev
