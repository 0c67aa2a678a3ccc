// Continuing token sequences, each step a forward pass over the whole context.
#pragma once

#include <functional>

#include "infer/loaded_model.h"
#include "infer/sampling.h"

namespace bev {

struct GenerationOptions {
  int64_t samples = 1;   // continuations of the same prompt
  int64_t tokens = 256;  // of each, at most
  int64_t context = 0;   // tokens the model sees at a time
  int64_t end = -1;      // the id that ends a continuation; -1: none
  SamplingOptions sampling{};
};

struct Continuation {
  std::vector<int32_t> ids;  // without the prompt and without the end
  bool ended = false;        // by the end id
};

// REQUIRES: the prompt is not empty and its ids are in the vocabulary; the model was loaded for
// samples x context tokens. `on_step` sees the continuations after each token and may say false to
// stop.
std::vector<Continuation> generate(
    LoadedModel& model, std::span<const int32_t> prompt, const GenerationOptions& options,
    const std::function<bool(std::span<const Continuation>)>& on_step);

}  // namespace bev
