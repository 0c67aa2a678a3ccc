#include "infer/scoring_windows.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer.h"

namespace bev {

TokenStream stream_of(const std::vector<int32_t>& ids) {
  return {.size = static_cast<int64_t>(ids.size()),
          .read = [&ids](int64_t begin, std::span<int32_t> out) {
            std::copy_n(ids.begin() + begin, out.size(), out.begin());
          }};
}

TokenStream part_of(const TokenStream& stream, int64_t begin, int64_t size) {
  return {.size = size, .read = [read = stream.read, begin](int64_t at, std::span<int32_t> out) {
            read(begin + at, out);
          }};
}

TokenStream joined(TokenStream first, TokenStream second) {
  const int64_t size = first.size + second.size;
  return {.size = size,
          .read = [first = std::move(first), second = std::move(second)](int64_t at,
                                                                         std::span<int32_t> out) {
            const auto here = static_cast<size_t>(
                std::clamp<int64_t>(first.size - at, 0, static_cast<int64_t>(out.size())));
            if (here > 0) first.read(at, out.first(here));
            if (here < out.size())
              second.read(std::max<int64_t>(0, at - first.size), out.subspan(here));
          }};
}

// Target i is token i of the stream with `before` in front of it, and token i + 1 without.
ScoringWindows::ScoringWindows(TokenStream stream, int64_t length, int64_t overlap, int32_t before)
    : stream_(std::move(stream)),
      length_(length),
      overlap_(overlap),
      before_(before),
      shift_(before < 0 ? 1 : 0),
      windows_(1) {
  BEV_CHECK(scored() >= 1, Data, "there are too few tokens to score: {}", stream_.size);
  BEV_CHECK(overlap >= 0 && overlap < length, Internal, "windows of {} overlap by {}", length,
            overlap);
  if (scored() > length) windows_ += div_ceil(scored() - length, length - overlap);
}

ScoringItem ScoringWindows::item(int64_t window) const {
  const int64_t targets = std::min(length_, scored() - begin(window));
  // The first id is the one before the first target.
  const int64_t place = begin(window) + shift_ - 1;
  const int64_t missing = place < 0 ? 1 : 0;
  ScoringItem item{.ids = std::vector<int32_t>(static_cast<size_t>(targets) + 1, before_),
                   .first = window == 0 ? 1 : overlap_ + 1};
  stream_.read(place + missing, std::span(item.ids).subspan(static_cast<size_t>(missing)));
  return item;
}

int64_t ScoringWindows::first_place(int64_t window) const {
  return begin(window) + shift_ + (window == 0 ? 0 : overlap_);
}

}  // namespace bev
