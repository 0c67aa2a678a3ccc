// Texts of a batch that are shorter than its sequences.
#pragma once

#include <span>

#include "data/batch.h"

namespace bev {

// Sequence `at` of the text becomes these tokens and padding, with positions, its length and, in
// batches that have them, the type 0, its first row as the pooled one and the label weight 1.
void put_padded(std::span<const int32_t> tokens, int32_t pad, HostText& text, int64_t at);

}  // namespace bev
