// Small pieces of SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace bev {

// For text and attributes. What is not a character of XML, or not UTF-8, becomes U+FFFD.
std::string escaped(std::string_view text);

// At most `most` characters, the last of them an ellipsis where something was cut off. REQUIRES:
// UTF-8.
std::string shortened(std::string_view text, size_t most);

// A coordinate: one decimal at most. REQUIRES: a finite value.
std::string coordinate(double value);

}  // namespace bev
