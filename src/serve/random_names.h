// Names and numbers that nobody can guess.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/format.h"
#include "net/random_bytes.h"

namespace bev {

inline uint64_t random_number() {
  std::array<std::byte, 8> bytes{};
  fill_random(bytes);
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  return number;
}

// Sixteen hexadecimal digits.
inline std::string random_name() { return format("{:016x}", random_number()); }

}  // namespace bev
