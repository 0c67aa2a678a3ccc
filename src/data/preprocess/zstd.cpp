#include <zstd.h>

#include "base/check.h"
#include "data/preprocess/byte_source.h"

namespace bev {

namespace {

// Several frames one after another are one file. The library bounds the window, and so the memory,
// to 128 MiB.
class ZstdDecompressor final : public Decompressor {
 public:
  ZstdDecompressor() : stream_(ZSTD_createDStream()) {
    BEV_CHECK(stream_ != nullptr, Device, "there is no memory to decompress zstd");
  }
  ~ZstdDecompressor() override { ZSTD_freeDStream(stream_); }
  ZstdDecompressor(const ZstdDecompressor&) = delete;
  ZstdDecompressor& operator=(const ZstdDecompressor&) = delete;

  Progress run(std::span<const char> in, std::span<char> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const size_t code = ZSTD_decompressStream(stream_, &to, &from);
    BEV_CHECK(ZSTD_isError(code) == 0, Data, "the zstd data cannot be read: {}",
              ZSTD_getErrorName(code));
    if (from.pos > 0 || to.pos > 0) complete_ = code == 0;
    return {.used = from.pos, .made = to.pos};
  }

  bool is_complete() const override { return complete_; }

 private:
  ZSTD_DStream* stream_;
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<Decompressor> make_zstd_decompressor() {
  return std::make_unique<ZstdDecompressor>();
}

}  // namespace bev
