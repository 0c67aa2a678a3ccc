#include "data/padded_text.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace bev {

void put_padded(std::span<const int32_t> tokens, int32_t pad, HostText& text, int64_t at) {
  BEV_CHECK(std::ssize(tokens) <= text.length, Internal,
            "a text of {} tokens is put into a sequence of {}", tokens.size(), text.length);
  const int64_t first = at * text.length;
  const auto row = text.tokens.begin() + first;
  std::fill(std::copy(tokens.begin(), tokens.end(), row), row + text.length, pad);
  const auto positions = text.positions.begin() + first;
  std::iota(positions, positions + text.length, 0);
  const auto sequence = static_cast<size_t>(at);
  text.lengths[sequence] = static_cast<int32_t>(tokens.size());
  if (!text.types.empty()) std::fill_n(text.types.begin() + first, text.length, 0);
  if (!text.pooled.empty()) text.pooled[sequence] = static_cast<int32_t>(text.first_row + first);
  if (!text.label_weight.empty()) text.label_weight[sequence] = 1;
}

}  // namespace bev
