// The likeliest continuations of one prompt, found by following several at a time.
#pragma once

#include "base/function_ref.h"
#include "infer/inference_engine.h"

namespace bev {

struct BeamOptions {
  int64_t beams = 4;
  int64_t tokens = 64;        // new ones, at most
  double length_penalty = 1;  // a text's score is its log-probability / tokens^penalty
  int32_t end = -1;           // the id that ends a text; -1: none
};

struct Beam {
  std::vector<int32_t> ids{};  // without the prompt and without the end
  double logprob = 0;          // of the ids, and of the end where it has ended
  double score = 0;            // the end counts as a token
  bool has_ended = false;
};

// Megatron-LM's search: of the 2 x beams likeliest continuations of all beams, those that end are
// kept as results where they are among the first `beams`, the others go on; the search ends when no
// beam can become better than the worst of `beams` results. Up to `beams` texts, best first; of
// equal scores the one found first; none where the model gives no token a finite probability.
// `goes_on` is asked before each further token; false: the search ends with what it has. REQUIRES:
// the decoder is idle, has `beams` rows and room for all of them; prompt, source and tokens fit its
// limits. With several ranks, all call it together.
std::vector<Beam> beam_search(
    InferenceEngine& decoder, std::span<const int32_t> prompt, const SourceText& source,
    const BeamOptions& options, FunctionRef<bool()> goes_on = [] { return true; });
// For a model without an encoder.
std::vector<Beam> beam_search(
    InferenceEngine& decoder, std::span<const int32_t> prompt, const BeamOptions& options,
    FunctionRef<bool()> goes_on = [] { return true; });

}  // namespace bev
