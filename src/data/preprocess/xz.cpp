#include <lzma.h>

#include "base/check.h"
#include "data/preprocess/byte_source.h"

namespace bev {

namespace {

std::string_view reason_of(lzma_ret code) {
  switch (code) {
    case LZMA_MEM_ERROR: return "there is no memory";
    case LZMA_MEMLIMIT_ERROR: return "it needs more than 512 MiB of memory";
    case LZMA_FORMAT_ERROR: return "something else stands behind it";
    case LZMA_OPTIONS_ERROR: return "it uses a filter that liblzma does not know";
    case LZMA_DATA_ERROR: return "it is damaged";
    default: return "it ends in the middle or is damaged";
  }
}

class XzDecompressor final : public Decompressor {
 public:
  XzDecompressor() {
    // xz -9 needs 65 MiB; what asks for much more was made to hurt.
    constexpr uint64_t kMemory = uint64_t{512} << 20;
    BEV_CHECK(lzma_stream_decoder(&stream_, kMemory, LZMA_CONCATENATED) == LZMA_OK, Device,
              "there is no memory to decompress xz");
  }
  ~XzDecompressor() override { lzma_end(&stream_); }
  XzDecompressor(const XzDecompressor&) = delete;
  XzDecompressor& operator=(const XzDecompressor&) = delete;

  // The library knows the end of the last of several streams only when it is told that no more
  // comes: with an empty input.
  Progress run(std::span<const char> in, std::span<char> out) override {
    stream_.next_in = reinterpret_cast<const uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret code = lzma_code(&stream_, in.empty() ? LZMA_FINISH : LZMA_RUN);
    complete_ = code == LZMA_STREAM_END;
    const bool stalled = code == LZMA_BUF_ERROR;
    BEV_CHECK(code == LZMA_OK || complete_ || stalled, Data, "the xz data cannot be read: {}",
              reason_of(code));
    return {.used = in.size() - stream_.avail_in, .made = out.size() - stream_.avail_out};
  }

  bool is_complete() const override { return complete_; }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<Decompressor> make_xz_decompressor() { return std::make_unique<XzDecompressor>(); }

}  // namespace bev
