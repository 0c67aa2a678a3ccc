// Dividing the sequences of a token file into training, validation and test.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "config/choices.h"

namespace bev {

struct SequenceRange {
  int64_t begin = 0, end = 0;
  bool operator==(const SequenceRange&) const = default;
};

enum class Split : uint8_t { Train, Valid, Test };
inline constexpr std::array<std::string_view, 3> kSplitNames{"training", "validation", "test"};

using SplitWeights = std::array<double, 3>;

// "969,30,1" or "98/2/0": up to three weights of at least 0, not all 0, missing ones 0. They may be
// in quotes, as scripts of Megatron-LM pass them. None when the text is something else.
std::optional<SplitWeights> parse_split(std::string_view text);

// The ranges of the three splits. Today's Megatron rounds the running sums of the weights; the
// classic one rounds each part and takes the excess off the ends.
std::array<SequenceRange, 3> split_sequences(const SplitWeights& weights, int64_t sequences,
                                             Compat compat);

}  // namespace bev
