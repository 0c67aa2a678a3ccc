// libFuzzer: any bytes as a file of pieces are refused with a Data error, or every piece lies in
// the file and in its tensor, and no two share bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/error.h"
#include "checkpoint/piece_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = std::as_bytes(std::span(data, size));
    std::vector<std::pair<size_t, size_t>> ranges;
    for (const bev::PieceInFile& found : bev::parse_piece_header(file, size, "fuzz.safetensors")) {
      const bev::TensorPiece& piece = found.piece;
      if (piece.where.elements() < 1 ||
          bev::intersection(piece.where, bev::whole_of(piece.shape)) != piece.where)
        std::abort();
      if (found.begin > size || piece.bytes() > size - found.begin) std::abort();
      ranges.emplace_back(found.begin, found.begin + piece.bytes());
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i)
      if (ranges[i].first < ranges[i - 1].second) std::abort();
  } catch (const bev::Error& e) {
    if (e.kind != bev::ErrorKind::Data) std::abort();
  }
  return 0;
}
