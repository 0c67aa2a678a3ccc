#include "infer/mask_filler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace bev {

namespace {

std::vector<MaskCandidate> likeliest(std::span<const double> logits, int64_t top) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  BEV_CHECK(std::isfinite(sum), Numerics,
            "the model gives no word a finite probability: its weights or what it computes from "
            "them are not finite");
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto count = std::min(static_cast<size_t>(top), ids.size());
  const auto logit_of = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  std::partial_sort(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count), ids.end(),
                    [&](int32_t a, int32_t b) {
                      return logit_of(a) != logit_of(b) ? logit_of(a) > logit_of(b) : a < b;
                    });
  std::vector<MaskCandidate> found;
  for (size_t i = 0; i < count; ++i)
    found.push_back({.id = ids[i], .probability = std::exp(logit_of(ids[i]) - largest) / sum});
  return found;
}

}  // namespace

EncoderInput masked_input(const BertText& text, std::span<const int32_t> tokens) {
  EncoderInput input{.ids = text.wrapped(tokens)};
  for (size_t i = 0; i < input.ids.size(); ++i)
    if (input.ids[i] == text.mask()) input.marked.push_back(static_cast<int32_t>(i));
  return input;
}

std::vector<FilledText> fill_masks(EncoderPass& pass, std::span<const EncoderInput> inputs,
                                   int64_t top, EncoderPass::OnDone on_done) {
  std::vector<FilledText> filled(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) filled[i].resize(inputs[i].marked.size());
  pass.logits(
      inputs,
      [&](size_t input, size_t mark, std::span<const double> logits) {
        filled[input][mark] = {.position = inputs[input].marked[mark],
                               .candidates = likeliest(logits, top)};
      },
      on_done);
  return filled;
}

}  // namespace bev
