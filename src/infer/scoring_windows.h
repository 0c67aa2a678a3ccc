// A stream of tokens cut into windows, so that each token is scored exactly once.
#pragma once

#include <functional>
#include <vector>

#include "infer/scorer.h"

namespace bev {

// Tokens by their place; REQUIRES: begin + out.size() <= size. May be read on several threads.
struct TokenStream {
  int64_t size = 0;
  std::function<void(int64_t begin, std::span<int32_t> out)> read{};
};
// REQUIRES: the ids outlive it.
TokenStream stream_of(const std::vector<int32_t>& ids);
// Some of it.
TokenStream part_of(const TokenStream& stream, int64_t begin, int64_t size);
// One behind the other.
TokenStream joined(TokenStream first, TokenStream second);

// Windows of `length` tokens; neighbours share `overlap` tokens, which the later one sees but does
// not score. The first token of all is scored from `before` (the end of another document), or, when
// that is negative, not at all.
class ScoringWindows {
 public:
  // REQUIRES: 0 <= overlap < length, at least one token can be scored.
  ScoringWindows(TokenStream stream, int64_t length, int64_t overlap, int32_t before);

  int64_t windows() const { return windows_; }
  int64_t scored() const { return stream_.size - shift_; }  // tokens

  ScoringItem item(int64_t window) const;
  // The place in the stream of the first token that the window scores.
  int64_t first_place(int64_t window) const;

 private:
  int64_t begin(int64_t window) const { return window * (length_ - overlap_); }

  TokenStream stream_;
  int64_t length_, overlap_;
  int32_t before_;
  int64_t shift_;  // of the first target, in the stream
  int64_t windows_;
};

}  // namespace bev
