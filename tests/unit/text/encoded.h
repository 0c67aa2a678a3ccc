#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace bev {

// The ids of a text, which lies in memory of exactly its size, so that sanitizers find reads behind
// it.
inline std::vector<int32_t> encoded(Tokenizer& tokenizer, std::string_view text) {
  const std::vector<char> exact(text.begin(), text.end());
  std::vector<int32_t> ids;
  tokenizer.encode({exact.data(), exact.size()}, ids);
  return ids;
}

}  // namespace bev
