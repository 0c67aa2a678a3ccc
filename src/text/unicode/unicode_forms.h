// Other forms of a text: canonical decomposition and composition, lower case. As the library
// tokenizers has them: what its tables do not know stays as it is.
#pragma once

#include <string>
#include <string_view>

namespace bev {

// REQUIRES of all: valid UTF-8.

// Characters taken apart, marks in their canonical order.
std::string decomposed(std::string_view text);

// The same put together again.
std::string composed(std::string_view text);

// Each character by itself: a sigma at the end of a word becomes the ordinary one.
std::string lower_cased(std::string_view text);

// What the lower case of one character appends. REQUIRES: c < 0x110000.
void append_lower_case(char32_t c, std::string& text);

}  // namespace bev
