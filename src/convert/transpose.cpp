#include "convert/transpose.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

namespace {

template <class T>
void transpose_as(const std::byte* in, int64_t rows, int64_t columns, std::byte* out) {
  constexpr int64_t kTile = 32;  // a tile of both sides stays in the first-level cache
  const T* from = reinterpret_cast<const T*>(in);
  T* to = reinterpret_cast<T*>(out);
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    for (int64_t c0 = 0; c0 < columns; c0 += kTile) {
      for (int64_t c = c0; c < std::min(c0 + kTile, columns); ++c) {
        for (int64_t r = r0; r < std::min(r0 + kTile, rows); ++r) {
          to[c * rows + r] = from[r * columns + c];
        }
      }
    }
  }
}

}  // namespace

void transpose_elements(std::span<const std::byte> in, int64_t rows, int64_t columns, size_t size,
                        std::span<std::byte> out) {
  BEV_CHECK(in.size() == out.size() && in.size() == static_cast<size_t>(rows * columns) * size,
            Internal, "transpose of [{}, {}] between {} and {} bytes", rows, columns, in.size(),
            out.size());
  switch (size) {
    case 2: transpose_as<uint16_t>(in.data(), rows, columns, out.data()); return;
    case 4: transpose_as<uint32_t>(in.data(), rows, columns, out.data()); return;
    case 8: transpose_as<uint64_t>(in.data(), rows, columns, out.data()); return;
    default: throw Error(ErrorKind::Internal, format("transpose of elements of {} bytes", size));
  }
}

}  // namespace bev
