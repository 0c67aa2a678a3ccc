// White space as Python's str.split, str.strip and \s have it, in text that may be any bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace bev {

// The bytes of the white space character that the text begins with; 0: another one, or none.
size_t white_space_at(std::string_view text);

// Without white space at both ends.
std::string_view strip(std::string_view text);

// The words between white space: how many, and the last one (empty where there is none).
int64_t count_words(std::string_view text);
std::string_view last_word(std::string_view text);

}  // namespace bev
