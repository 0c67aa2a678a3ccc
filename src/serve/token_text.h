// The text of single tokens, for people and for programs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace bev {

// What the token adds to a text that ends with the token `before` (-1: to none). A part of a
// character is written as its bytes: "bytes:\xe2\x82".
std::string token_text(const Tokenizer& tokenizer, int32_t before, int32_t id);

// The same of each token of a text.
std::vector<std::string> token_texts(const Tokenizer& tokenizer, std::span<const int32_t> ids);

// How many characters UTF-8 has.
int64_t count_characters(std::string_view text);

}  // namespace bev
