// `bevatron generate` on a BERT: the most likely words at the masks of prompts.
#pragma once

#include "app/cli/cli_flags.h"
#include "app/launch/inference_ranks.h"
#include "infer/model_folder.h"

namespace bev::app {

// Usage error for a flag without effect here, a prompt without [MASK] and one that is too long.
void generate_masked(const FlagValues& flags, InferenceRanks& ranks, const ModelFolder& folder);

}  // namespace bev::app
