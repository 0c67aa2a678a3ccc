// Models with two hidden states over the same tokens, each with its blocks, final norm, head and
// loss. Both embeddings and both heads share one table.
#pragma once

#include "config/config.h"
#include "model/model_spec.h"

namespace bev::test {

// Both divide the blocks of gpt_spec(config). REQUIRES: a tied GPT with learned positions.

// Blocks in turn on one state and the other. The first state ends before the last block of the
// second.
ModelSpec two_towers(const Config& config);

// A third of the blocks are an encoder, whose head reads the input of its last block. The others
// are a decoder; each but the second adds the encoder's output to its own. REQUIRES: three blocks.
ModelSpec encoder_decoder(const Config& config);

}  // namespace bev::test
