// A data file of a checkpoint: valid safetensors, whose arrays are pieces of logical tensors. The
// format's metadata says of each array, under its name, of which tensor it is, that tensor's shape,
// where the piece begins in it, and its checksum.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/checksum.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "tensor/rectangle.h"

namespace bev {

struct TensorPiece {
  std::string tensor;  // "layers.3.mlp.down.weight", "layers.3.mlp.down.weight/adam.m"
  DType dtype{};
  Shape shape;  // of the whole tensor
  Rectangle where{};

  bool is_whole() const { return where == whole_of(shape); }
  size_t bytes() const { return static_cast<size_t>(where.elements()) * size_of(dtype); }
  // The tensor's own where it is whole, else with the place behind it:
  // "layers.0.norm1.weight@0,64".
  std::string name_in_file() const;
};

// Writes one file front to back; the checksums go into its header at the end. Errors of the disk
// are Data errors.
class PieceFileWriter {
 public:
  // The pieces lie in the file in this order. REQUIRES: no place of a tensor twice, none empty or
  // outside its tensor, no tensor named as the metadata of the format are.
  PieceFileWriter(const std::filesystem::path& path, std::vector<TensorPiece> pieces);

  // The next bytes of the data; any portions.
  void write(std::span<const std::byte> bytes);
  // Flushes to the disk and gives the file its name. REQUIRES: all bytes were written.
  CheckpointFile finish();

 private:
  std::string header() const;

  std::filesystem::path path_;
  std::vector<TensorPiece> pieces_;
  std::vector<uint64_t> checksums_;  // of finished pieces
  std::unique_ptr<Checksum> running_;
  AtomicFile file_;
  size_t header_bytes_ = 0, data_bytes_ = 0;
  size_t left_ = 0;  // of the piece being written
};

// A piece as a file has it.
struct PieceInFile {
  TensorPiece piece;
  size_t begin = 0;  // first byte in the file
  uint64_t checksum = 0;
};

// Checks the header of a file of `file_bytes` bytes, of which `head` are the first: all of the
// header, at least. Data error naming `source`.
std::vector<PieceInFile> parse_piece_header(std::span<const std::byte> head, size_t file_bytes,
                                            std::string_view source);

// Reads and checks the header, whose checksum is that of the manifest's entry.
std::vector<PieceInFile> read_piece_header(const PositionedFile& file, const CheckpointFile& entry);

}  // namespace bev
