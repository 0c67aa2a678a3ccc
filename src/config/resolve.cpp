#include "config/resolve.h"

#include "base/integer.h"

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
  s.width = m.width;
  s.heads = m.heads;
  s.kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads;
  s.head_dim = m.head_dim > 0 ? m.head_dim : div_exact(m.width, m.heads);
  s.ffn = m.ffn > 0 ? m.ffn : default_ffn(m.width, is_gated(m.activation));
  s.vocab = m.vocab;
  s.padded_vocab = padded_vocab(m.vocab, m.vocab_multiple, config.parallel.tensor);
  s.positions = m.positions > 0 ? m.positions : config.train.sequence;
  if (m.position == PositionKind::Rope)
    s.rotary_dim = static_cast<int64_t>(static_cast<double>(s.head_dim) * m.rope_fraction);
  return s;
}

int64_t data_ranks(const Config& config) {
  const ParallelConfig& p = config.parallel;
  return div_exact(p.ranks, p.tensor * p.context * p.pipeline);
}

int64_t pipeline_chunks(const Config& config) {
  const ParallelConfig& p = config.parallel;
  if (p.chunk_layers == 0) return p.chunks;
  return div_exact(config.model.layers, p.pipeline * p.chunk_layers);
}

BatchShape resolve_batch(const Config& config) {
  const TrainConfig& t = config.train;
  const int64_t together = t.micro_batch * data_ranks(config);
  const int64_t global = t.global_batch > 0 ? t.global_batch : together;
  return {.sequence = t.sequence,
          .micro_batch = t.micro_batch,
          .global_batch = global,
          .micros = div_exact(global, together)};
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
