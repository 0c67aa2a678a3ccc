// SHA-256.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace bev {

// In lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace bev
