// Fill-mask: the most likely words at masked positions, by a BERT.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "infer/bert_text.h"
#include "infer/encoder_pass.h"

namespace bev {

struct MaskCandidate {
  int32_t id = 0;
  double probability = 0;  // over the vocabulary
};

struct FilledMask {
  int64_t position = 0;                   // in the ids of the text, [CLS] included
  std::vector<MaskCandidate> candidates;  // best first; of equal ones the smaller id
};
using FilledText = std::vector<FilledMask>;  // in the order of the masks

// The input of a text: its ids; each mask is marked. There may be none.
EncoderInput masked_input(const BertText& text, std::span<const int32_t> tokens);

// Fills the marked positions of each input with the `top` most likely ids. Collective. Numerics
// error if a probability is not finite.
std::vector<FilledText> fill_masks(
    EncoderPass& pass, std::span<const EncoderInput> inputs, int64_t top,
    EncoderPass::OnDone on_done = [](int64_t) {});

}  // namespace bev
