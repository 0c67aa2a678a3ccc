// Decompression of a stream: gzip (zlib), xz (liblzma) and zstd, each in a file of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace bev {

class Decompressor {
 public:
  virtual ~Decompressor() = default;

  struct Progress {
    size_t used = 0, made = 0;  // bytes of input and output
  };
  // Decompresses until the input is used up or the output is full. A damaged stream is a Data
  // error without the file's name.
  virtual Progress run(std::span<const char> in, std::span<char> out) = 0;

  // Whether the stream may end here.
  virtual bool is_complete() const = 0;
};

std::unique_ptr<Decompressor> make_gzip_decompressor();
std::unique_ptr<Decompressor> make_xz_decompressor();
std::unique_ptr<Decompressor> make_zstd_decompressor();

// By the first bytes of a file (six are enough); null when it is none of them.
std::unique_ptr<Decompressor> decompressor_for(std::string_view first_bytes);

}  // namespace bev
