// How a token is drawn, for all backends alike.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace bev::ops {

// The columns of ChooseTokens::options.
enum class ChoiceColumn : uint8_t { Temperature, TopK, TopP, MinP, RepetitionPenalty };
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

}  // namespace bev::ops
