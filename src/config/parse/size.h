// A number of bytes, tokens or the like as people write it on a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bev {

// What parse_size accepts, for messages.
inline constexpr std::string_view kSizeNotation =
    "digits with an optional K, M, G or T (thousands) or Ki, Mi, Gi or Ti (powers of 1024)";

// "300", "100K" = 100,000, "1_500M", "1.5G", "64Ki" = 65,536, "2e6"; upper or lower case, a final B
// means nothing. Anything that is not exactly a number >= 0 of 63 bits gives nothing.
std::optional<int64_t> parse_size(std::string_view text);

}  // namespace bev
