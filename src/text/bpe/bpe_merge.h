// The merging of byte-pair encoding: while two neighbours are a pair of the table, the pair that
// comes first in its order, and of several the leftmost, becomes one token.
#pragma once

#include <cstdint>
#include <span>

#include "text/bpe/merge_table.h"

namespace bev {

// Merges in place; the tokens are then the first of `tokens`, as many as returned. Takes the way
// that suits the length. REQUIRES: fewer than 2^32 tokens.
size_t merge_tokens(const MergeTable& table, std::span<int32_t> tokens);

constexpr size_t kShortPiece = 96;  // tokens

// The same for few tokens: time grows with the square, without memory of its own.
// REQUIRES: at most kShortPiece tokens.
size_t merge_short(const MergeTable& table, std::span<int32_t> tokens);

// The same for any number: n log n, with about 30 bytes for each token meanwhile.
size_t merge_long(const MergeTable& table, std::span<int32_t> tokens);

}  // namespace bev
