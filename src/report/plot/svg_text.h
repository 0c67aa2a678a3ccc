// Small pieces of SVG and HTML.
#pragma once

#include <array>
#include <cstddef>
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

// Colours that people with any colour vision tell apart, for paper and for dark screens.

struct RunColour {
  std::string_view on_light, on_dark;
};

// After Okabe and Ito, without the yellow, which white paper swallows.
inline constexpr std::array<RunColour, 7> kRunColours{{
    {"#0072b2", "#56a8e8"},
    {"#d55e00", "#ff8f4d"},
    {"#009e73", "#35c99d"},
    {"#c0599a", "#e59cc8"},
    {"#e69f00", "#f5bf47"},
    {"#3fa7dc", "#9ad4f5"},
    {"#5b6068", "#b9bec7"},
}};

// Runs beyond the colours have them again, with lines of another pattern.
inline constexpr std::array<std::string_view, 3> kRunDashes{"", "7 3", "2 3"};

}  // namespace bev
