// SHA-256, for golden files that state a long result by its digest.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace bev::golden {

// In lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace bev::golden
