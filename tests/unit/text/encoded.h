#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace bev {

// The token ids of `text`, which is copied to memory of exactly its size, so that sanitizers find
// reads past its end.
inline std::vector<int32_t> encoded(Tokenizer& tokenizer, std::string_view text) {
  const std::vector<char> exact(text.begin(), text.end());
  std::vector<int32_t> ids;
  tokenizer.encode({exact.data(), exact.size()}, ids);
  return ids;
}

}  // namespace bev
