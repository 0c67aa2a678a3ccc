// Logits to tokens: the likeliest, or one drawn from the likeliest.
#pragma once

#include <cstdint>

#include "base/philox.h"
#include "device/exec.h"

namespace bev::ops {

// How a token is drawn, for all backends alike.

// The columns of SampleTokens::options.
enum class SamplingColumn : uint8_t { Temperature, TopK, TopP, MinP, RepetitionPenalty };
constexpr int64_t kChoiceColumns = 5;

// The draw in [0, 1) for the token at a position of a text: a pure function, so that a text does
// not depend on what is generated beside it.
constexpr double choice_draw(int64_t key, int64_t position) {
  const PhiloxBlock block = philox(static_cast<uint64_t>(key), 0, static_cast<uint64_t>(position));
  const uint64_t bits = (uint64_t{block[0]} << 32 | block[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

// The logit of a token that was seen before (Keskar et al. 2019).
template <class T>
constexpr T penalised(T logit, T penalty) {
  return logit > 0 ? logit / penalty : logit * penalty;
}

// For each row, over the first `classes` columns:
//   1. l = logit, penalised(logit, penalty) where the bit of the id is set in `seen`; what is not
//      finite has no chance. The likeliest order: larger l first, of equal ones the smaller id.
//   2. Temperature 0: the likeliest id. Else w = exp((l - max l) / temperature), and kept are
//      the top_k likeliest (0: all), of those the shortest run of likeliest whose sum of w is at
//      least top_p times that of all of them (the first always; top_p >= 1: all), of those the ones
//      with w >= min_p.
//   3. The id is the first in the order of ids for which the sum of w of the kept ids up to it
//      exceeds choice_draw(key, position) times the sum of all kept.
// logprobs[row] = log softmax(logits)[id] of the logits as they are. The id's bit is set in `seen`.
// Without a finite logit: id -1, logprob NaN.
struct SampleTokens {
  ConstTensor logits;  // [rows, columns], contiguous
  int64_t classes = 0;
  ConstTensor options;  // f64 [rows, kChoiceColumns], contiguous
  ConstTensor keys;     // i64 [rows, 2]: key, position; contiguous
  Tensor seen{};        // i32 [rows, div_ceil(classes, 32)], may be absent: bit id % 32 of id / 32
  Tensor ids;           // i32 [rows]
  Tensor logprobs;      // [rows] of the accumulation type
};
void sample_tokens(Exec& ex, const SampleTokens& c);

}  // namespace bev::ops
