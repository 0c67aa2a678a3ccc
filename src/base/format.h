// Text formatting, kept in one place so that the library behind it can change.
#pragma once

#include <fmt/format.h>

#include <string>

namespace bev {

using fmt::format;

// 1234567 -> "1,234,567".
std::string with_commas(int64_t value);

// 6442450944 -> "6.00 GiB". Exact below 1 KiB.
std::string as_bytes(double bytes);

// Seconds as people say them: "0.52 s", "3 min 20 s", "2 h 05 min", "31 d 8 h".
std::string as_duration(double seconds);

}  // namespace bev
