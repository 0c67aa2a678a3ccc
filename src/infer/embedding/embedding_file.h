// Embeddings in a file that other programs read: a NumPy array [rows, width] of float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/file.h"

namespace bev {

struct NpyHeader {
  int64_t rows = 0, width = 0;
  size_t data_begin = 0;  // bytes before the first row
};

// Version 1.0 of the format, padded so that the rows begin at a multiple of 64 bytes.
std::string npy_header(int64_t rows, int64_t width);

// Reads the header at the beginning of a file; kNpyHeaderBytes of the file suffice. Data error that
// names `name`: not a NumPy file, not an array [rows, width] of little-endian float32 in C order,
// empty, or `file_bytes` is not the size that the header implies.
constexpr size_t kNpyHeaderBytes = size_t{1} << 16;
NpyHeader parse_npy_header(std::span<const std::byte> begin, uint64_t file_bytes,
                           const std::string& name);

// A file of embeddings, mapped: it may be larger than memory.
class EmbeddingFile {
 public:
  // Data error as parse_npy_header().
  explicit EmbeddingFile(const std::filesystem::path& path);

  int64_t rows() const { return header_.rows; }
  int64_t width() const { return header_.width; }
  const std::filesystem::path& path() const { return file_.path(); }

  // REQUIRES: 0 <= begin <= end <= rows().
  std::span<const float> read(int64_t begin, int64_t end) const;
  // As MappedFile's.
  void prefetch(int64_t begin, int64_t end) const;
  void release(int64_t begin, int64_t end) const;

 private:
  size_t offset_of(int64_t row) const;

  MappedFile file_;
  NpyHeader header_;
};

}  // namespace bev
