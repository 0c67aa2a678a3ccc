// How people write numbers, sizes, ranks and strings on command lines and in TOML files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bev {

// "12", "1_000_000", "1e6", "2.5e3", "-3": anything that is exactly an integer of 64 bits.
std::optional<int64_t> parse_integer(std::string_view text);
// The text without blanks at both ends.
std::string_view without_blanks(std::string_view text);

// A finite decimal number.
std::optional<double> parse_real(std::string_view text);

// true, false, 1, 0.
std::optional<bool> parse_boolean(std::string_view text);

// UTF-8 without NUL: what a TOML string can hold and a path can be.
bool is_plain_text(std::string_view text);

// A number as short as possible such that it reads back to the same double; with a point or an
// exponent, as TOML requires.
std::string real_text(double value);

// Words between single blanks (or another character).
std::vector<std::string_view> split_words(std::string_view text, char between = ' ');

// "a, b or c".
std::string enumerate(const std::vector<std::string_view>& words);

// The text between quotes, special characters escaped.
std::string toml_string(std::string_view text);

// A number of bytes, tokens or the like as people write it on a command line.

// The notation of parse_size(), for messages.
inline constexpr std::string_view kSizeNotation =
    "digits with an optional K, M, G or T (thousands) or Ki, Mi, Gi or Ti (powers of 1024)";

// "300", "100K" = 100,000, "1_500M", "1.5G", "64Ki" = 65,536, "2e6"; upper or lower case, a final B
// is ignored. Anything that is not exactly a number >= 0 of 63 bits gives nothing.
std::optional<int64_t> parse_size(std::string_view text);

// Some ranks as people type them: "all", "0", "0,2-5".

class RankList {
 public:
  // Empty for any other text.
  static std::optional<RankList> parse(std::string_view text);

  bool has(int64_t rank) const;

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // first and last
};

}  // namespace bev
