#include "base/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace bev {

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string as_bytes(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? format("{:.0f} B", bytes) : format("{:.2f} {}", bytes, units[unit]);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t here = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < here ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i) out += i <= here ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::string as_duration(double seconds) {
  if (seconds < 60) return format("{:.2f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  const int64_t minutes = whole / 60;
  const int64_t hours = minutes / 60;
  if (minutes < 60) return format("{} min {:02} s", minutes, whole % 60);
  if (hours < 48) return format("{} h {:02} min", hours, minutes % 60);
  return format("{} d {} h", hours / 24, hours % 24);
}

}  // namespace bev
