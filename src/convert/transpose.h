// Turning a matrix that lies in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace bev {

// out [columns, rows] = in [rows, columns], elements of `size` bytes.
void transpose_elements(std::span<const std::byte> in, int64_t rows, int64_t columns, size_t size,
                        std::span<std::byte> out);

}  // namespace bev
