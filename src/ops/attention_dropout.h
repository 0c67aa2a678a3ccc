// The rule by which attention drops probabilities; one definition for all backends.
//
// A block of Philox serves kKeysPerBlock adjacent keys of one query and head. Its counter is
// (logical row, head << 32 | key / 8), and the draw for a key is 16 bits of it: half key % 2, the
// low one first, of word key / 2 % 4. Draws are short and rounds few because every score needs a
// draw: on a GPU the instructions for them are what dropout costs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/philox.h"

namespace bev::ops {

constexpr int kKeysPerBlock = 8;
constexpr int kAttentionRounds = 7;

constexpr uint32_t attention_draw(uint64_t key, uint64_t row, uint64_t head, uint64_t j) {
  const PhiloxBlock block =
      philox<kAttentionRounds>(key, row, head << 32 | j / uint64_t{kKeysPerBlock});
  return block[j / 2 % 4] >> (j % 2 * 16) & 0xFFFF;
}

// Draws below it are dropped: with probability threshold / 2^16, the nearest there is to the one
// asked for, but at most 1 - 2^-16. 0, which drops nothing, stands for probabilities below 2^-17.
// REQUIRES: 0 <= probability < 1.
inline uint32_t attention_threshold(double probability) {
  return static_cast<uint32_t>(std::min(std::lround(probability * 65536), 65535L));
}

// What is kept is scaled by the inverse of how often that happens, which leaves the expectation
// as it is.
inline double attention_keep_factor(double probability) {
  return 65536.0 / (65536 - attention_threshold(probability));
}

}  // namespace bev::ops
