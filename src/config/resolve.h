// Numbers that follow from a configuration. A Config says what the user wrote; these say what it
// means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/batch_schedule.h"
#include "config/config.h"
#include "tensor/dtype.h"

namespace bev {

// The model with every "0: derived" filled in.
struct ModelShape {
  int64_t layers, width, heads, kv_heads, head_dim, ffn;
  int64_t decoder_layers;  // 0: the model has no decoder beside its layers
  int64_t vocab;           // as the tokenizer has it
  int64_t padded_vocab;    // rows of the embedding
  int64_t positions;
  int64_t rotary_dim;  // 0: no rotation
};
// REQUIRES: check(config) found nothing.
ModelShape resolve_model(const Config& config);

// Megatron's rule: vocab rounded up to a multiple of `multiple * tensor_ranks`.
int64_t padded_vocab(int64_t vocab, int64_t multiple, int64_t tensor_ranks);

// Megatron's inner size when none is given.
int64_t default_ffn(int64_t width, bool gated);

struct BatchShape {
  int64_t sequence, micro_batch, global_batch;
  int64_t micros;               // micro-batches of one step, of each rank that shares the batch
  int64_t second_sequence = 0;  // of the second text; 0: samples have one text
  int64_t tokens_per_sample() const { return sequence + second_sequence; }
  int64_t tokens_per_micro() const { return micro_batch * sequence; }  // of the first text
};
BatchShape resolve_batch(const Config& config);
// "512", or "(512 + 128)" if there is a second text or a decoder.
std::string both_sides(int64_t first, int64_t second);

// Tokens of the decoder's text; 0: the model has no decoder beside its layers.
int64_t decoder_sequence(const Config& config);

// The first stage of the decoder; 0: one stage, or no decoder beside the layers.
int64_t decoder_stage(const Config& config);

// The size of the vectors that an encoder makes of texts.
inline int64_t embedding_width(const ModelConfig& model) {
  return model.projection > 0 ? model.projection : model.width;
}

// Blocks that the pipeline's stages share: of both encoders of a bi-encoder.
int64_t pipeline_blocks(const ModelConfig& model);

// The numbers of log.top_k; fewer if a text is not a whole number above 0.
inline constexpr size_t kMostAccuracies = 7;
std::vector<int64_t> top_k_of(const LogConfig& log);

// The ranks that share the batch.
int64_t data_ranks(const Config& config);

// The contexts that a query of a bi-encoder is compared with: those of a micro-batch on all data
// ranks.
int64_t compared_contexts(const Config& config);

// The stages of each pipeline rank.
int64_t pipeline_chunks(const Config& config);

BatchSchedule resolve_batch_schedule(const Config& config);

int64_t resolve_iterations(const Config& config);

DType resolve_dtype(const Config& config);

}  // namespace bev
