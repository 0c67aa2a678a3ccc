// Families of models: a configuration becomes a list of parts. The only files of model/ that read
// the configuration.
#pragma once

#include "config/config.h"
#include "model/model_spec.h"

namespace bev {

// The model of a checked configuration.
ModelSpec model_spec(const Config& config);

// Decoders of the GPT and Llama kind: embedding, causal pre-norm blocks, final norm, LM head.
ModelSpec gpt_spec(const Config& config);

// Tokens whose logits exist at the same time.
int64_t head_chunk(const Config& config);

// Which blocks of each stage are recomputed.
RecomputeSpec recompute_spec(const RecomputeConfig& recompute);

// Rotary positions; absent if the model has others.
std::optional<RopeSpec> rope_spec(const Config& config);

}  // namespace bev
