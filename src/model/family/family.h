// Families of models: a configuration becomes a list of parts. The only files of model/ that read
// the configuration.
#pragma once

#include "config/config.h"
#include "config/resolve.h"
#include "model/model_spec.h"

namespace bev {

// The model of a checked configuration.
ModelSpec model_spec(const Config& config);

// Decoders of the GPT and Llama kind: embedding, causal pre-norm blocks, final norm, LM head.
ModelSpec gpt_spec(const Config& config);

// Encoders of the BERT kind: embedding with token types, bidirectional blocks, head for masked
// tokens, binary head.
ModelSpec bert_spec(const Config& config);

// T5: a bidirectional encoder, a causal decoder with cross attention to its output, LM head.
ModelSpec t5_spec(const Config& config);

// Two encoders of the BERT kind, or one for both: embeddings of queries and contexts are the first
// tokens of their final hidden states.
ModelSpec biencoder_spec(const Config& config);
// Prefixes of their parameters' names; none if one encoder reads both.
inline constexpr const char *kQueryTower = "query.", *kContextTower = "context.";

// Whether the parameter is the last bias of the encoder of contexts. It adds one number to all
// scores of a query, so softmax cancels it and its gradient is rounding noise.
bool is_bias_of_contexts(const ModelConfig& model, const std::string& parameter);

// Specifications that families have in common.

// Where dropout is drawn; part of the key, so that no two places draw the same mask.
enum class DropoutSite : uint8_t {
  Embedding,
  Probabilities,
  Attention,
  Mlp,
  CrossProbabilities,
  Cross
};
DropoutSpec dropout_spec(const Config& config, double probability, int64_t block, DropoutSite site);

// Gradients of parameters that are applied between tensor regions: with sequence parallelism each
// tensor rank computes its own tokens.
Replica replica_between_regions(const Config& config);

NormSpec norm_spec(const Config& config, Replica tensor);
TableSpec table_spec(const Config& config, const std::string& name, int64_t rows, int64_t width,
                     Role role);
// A causal pre-norm block.
BlockSpec block_spec(const Config& config, const ModelShape& shape, int64_t number);

// The label smoothing of the op, which smooths over all classes; Megatron-LM smooths over all but
// the target.
double smoothing(const Config& config, int64_t padded_vocab);

// Tokens whose logits exist at the same time.
int64_t head_chunk(const Config& config);

// An encoder of the BERT kind, up to its final norm.
struct EncoderPlace {
  std::string prefix{};  // of its names
  int number = 0;        // among the encoders of the model; its hidden state
};
void add_encoder(const Config& config, const EncoderPlace& place, bool has_types, ModelSpec& spec);

// Which blocks of each stage are recomputed.
RecomputeSpec recompute_spec(const RecomputeConfig& recompute);

// Rotary positions; absent if the model has others.
std::optional<RopeSpec> rope_spec(const Config& config);

}  // namespace bev
