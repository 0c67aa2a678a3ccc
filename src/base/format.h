// Text formatting, kept in one place so that the library behind it can change.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace bev {

// fmt::format as an object rather than a function: for an argument of a std type,
// argument-dependent lookup would find std::format as well, wherever the standard library has one,
// and call neither.
struct Format {
  template <class... Args>
  std::string operator()(fmt::format_string<Args...> text, Args&&... args) const {
    return fmt::format(text, std::forward<Args>(args)...);
  }
};
inline constexpr Format format;

// 1234567 -> "1,234,567".
std::string with_commas(int64_t value);

// 6442450944 -> "6.00 GiB". Exact below 1 KiB.
std::string as_bytes(double bytes);

// Bytes as base64 with padding (RFC 4648).
std::string base64(std::string_view bytes);

// Seconds as people say them: "0.52 s", "3 min 20 s", "2 h 05 min", "31 d 8 h".
std::string as_duration(double seconds);

}  // namespace bev
