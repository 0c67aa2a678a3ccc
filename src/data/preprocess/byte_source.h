// The bytes of a file or of stdin, decompressed when they are gzip, xz or zstd: by their content,
// whatever the name says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

// Decompression of a stream: gzip (zlib), xz (liblzma) and zstd, each in a file of its own.

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

class ByteSource {
 public:
  // `path` may be "-" for stdin. Data errors name the file.
  explicit ByteSource(const std::string& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills as much of `out` as there is; less only at the end. A compressed file that ends in the
  // middle or is damaged is a Data error.
  size_t read(std::span<char> out);

  // Bytes of the file taken so far, compressed as they are.
  int64_t taken() const { return taken_; }
  const std::string& name() const { return name_; }

 private:
  size_t read_raw(std::span<char> out);
  size_t read_compressed(std::span<char> out);
  void refill();

  std::string name_;
  int descriptor_;
  int64_t taken_ = 0;
  std::vector<char> raw_;  // read ahead
  size_t begin_ = 0, end_ = 0;
  bool at_end_ = false;  // of the file
  std::unique_ptr<Decompressor> decompressor_;
};

// The size of the file; -1 when it has none (a pipe).
int64_t size_of_input(const std::string& path);

}  // namespace bev
