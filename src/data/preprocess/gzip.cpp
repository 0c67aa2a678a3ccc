#include <zlib.h>

#include "base/check.h"
#include "data/preprocess/byte_source.h"

namespace bev {

namespace {

// Several members one after another are one file; zeros may stand behind the last, as tapes and
// some programs leave them.
class GzipDecompressor final : public Decompressor {
 public:
  GzipDecompressor() {
    constexpr int kGzipOnly = 16;
    BEV_CHECK(inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, Device,
              "there is no memory to decompress gzip");
  }
  ~GzipDecompressor() override { inflateEnd(&stream_); }
  GzipDecompressor(const GzipDecompressor&) = delete;
  GzipDecompressor& operator=(const GzipDecompressor&) = delete;

  Progress run(std::span<const char> in, std::span<char> out) override {
    Progress done;
    if (complete_ && started_) {
      while (done.used < in.size() && in[done.used] == '\0') ++done.used;
      if (done.used == in.size()) return done;
      inflateReset(&stream_);
      complete_ = false;
    }
    started_ = true;
    const std::span<const char> rest = in.subspan(done.used);
    // zlib does not write to its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    stream_.avail_in = static_cast<uInt>(rest.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    BEV_CHECK(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR, Data,
              "the gzip data is damaged ({})", stream_.msg != nullptr ? stream_.msg : "zlib");
    complete_ = code == Z_STREAM_END;
    done.used += rest.size() - stream_.avail_in;
    done.made = out.size() - stream_.avail_out;
    return done;
  }

  bool is_complete() const override { return complete_; }

 private:
  z_stream stream_{};
  bool started_ = false, complete_ = false;
};

}  // namespace

std::unique_ptr<Decompressor> make_gzip_decompressor() {
  return std::make_unique<GzipDecompressor>();
}

}  // namespace bev
