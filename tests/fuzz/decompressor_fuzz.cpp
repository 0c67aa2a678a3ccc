// libFuzzer: any bytes as a compressed stream end, or are refused with a Data error; the same bytes
// come out whatever the size of the pieces. The first byte chooses the format and the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/preprocess/byte_source.h"

namespace {

constexpr size_t kMost = size_t{1} << 20;  // a small stream may become a large text

struct Outcome {
  std::string text;
  bool good = false;
};

Outcome decompress(int format, const char* data, size_t size, size_t in_piece, size_t out_piece) {
  const auto stream = format == 0   ? bev::make_gzip_decompressor()
                      : format == 1 ? bev::make_xz_decompressor()
                                    : bev::make_zstd_decompressor();
  Outcome outcome;
  std::vector<char> out(out_piece);
  size_t at = 0;
  try {
    while (outcome.text.size() < kMost) {
      const std::span<const char> in(data + at, std::min(in_piece, size - at));
      const auto done = stream->run(in, out);
      if (done.used > in.size() || done.made > out.size()) std::abort();
      at += done.used;
      outcome.text.append(out.data(), done.made);
      if (done.used == 0 && done.made == 0) {
        if (!in.empty()) return outcome;
        outcome.good = stream->is_complete();
        return outcome;
      }
    }
  } catch (const bev::Error& error) {
    if (error.kind != bev::ErrorKind::Data) throw;
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int format = data[0] % 3;
  const auto* bytes = reinterpret_cast<const char*>(data + 1);
  const Outcome whole = decompress(format, bytes, size - 1, size, 4096);
  const Outcome pieces = decompress(format, bytes, size - 1, 1 + data[0] / 3, 1 + data[0] / 7);
  if (whole.text.size() >= kMost || pieces.text.size() >= kMost) return 0;
  if (whole.good != pieces.good) std::abort();
  if (whole.good && whole.text != pieces.text) std::abort();
  return 0;
}
