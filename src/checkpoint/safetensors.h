// The safetensors file format: 8 bytes of header length (little endian), a JSON header, then the
// raw arrays, packed without holes. The reader believes nothing: everything the header says is
// checked against the file before it is used, and each problem is one Data error naming file and
// tensor.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/function_ref.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace bev {

// One array of a file.
struct StoredTensor {
  std::string name;
  std::string dtype_name;      // as the format spells it: "BF16"
  std::optional<DType> dtype;  // none: a type of the format that this program has no use for
  Shape shape;                 // rank 0: a scalar
  size_t begin = 0;            // first byte, counted from the start of the file
  size_t bytes = 0;
};

// REQUIRES: at most kMaxRank extents, none negative.
Shape make_shape(std::span<const int64_t> extents);

class SafetensorsReader {
 public:
  // The format's own bound on the header.
  static constexpr size_t kHeaderLimit = 100'000'000;

  // Maps the file and checks the whole header.
  explicit SafetensorsReader(const std::filesystem::path& path);

  // Sorted by name.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return file_.path(); }

  const StoredTensor* find(std::string_view name) const;  // null: the file has no such array
  const StoredTensor& at(std::string_view name) const;    // a Data error when there is none

  // The raw bytes, valid while the reader lives; no alignment is promised.
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;

  // The element type. A Data error when the program cannot read it.
  DType dtype_of(const StoredTensor& tensor) const;

  // All elements converted to double.
  std::vector<double> read_f64(const StoredTensor& tensor) const;

 private:
  MappedFile file_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Checks a header that starts at byte 8 of a file of `file_bytes` bytes. What the reader is made
// of; separate so that it can be given any bytes.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           std::string_view source);
// The same of a file of `file_bytes` bytes of which only the first are there. REQUIRES: at least
// all of the header, unless the file is shorter.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> head, size_t file_bytes,
                                           std::string_view source);
// How many bytes stand before the data, from the first eight; a Data error where that cannot be.
size_t safetensors_data_begin(std::span<const std::byte> head, size_t file_bytes,
                              std::string_view source);

// An array to be written.
struct TensorToWrite {
  std::string name;
  DType dtype;
  Shape shape;
};

// What stands before the data of a file whose arrays follow each other in this order.
std::string safetensors_header(std::span<const TensorToWrite> tensors,
                               const std::map<std::string, std::string>& metadata);

// Writes a file front to back, in portions of any size. The order is that of the format's own
// library (wide types first, then by name), so that every array is aligned and equal content gives
// equal bytes. The file appears whole or not at all; an error of the disk is a Data error.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

  // In the order of the file.
  const std::vector<TensorToWrite>& tensors() const { return tensors_; }
  void write(std::span<const std::byte> bytes);
  // REQUIRES: the bytes of all arrays were written.
  void finish();

 private:
  std::vector<TensorToWrite> tensors_;
  AtomicFile file_;
  size_t left_ = 0;
};

// The same with one array in memory at a time: `fill` is called once per array, in file order, with
// room for its elements.
void write_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                       FunctionRef<void(const TensorToWrite&, std::span<std::byte>)> fill,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

// The same for arrays that are too large for memory: `produce` hands the bytes of its array to
// `put`, in any portions. REQUIRES: as many bytes as the array has.
using PutBytes = FunctionRef<void(std::span<const std::byte>)>;
void stream_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                        FunctionRef<void(const TensorToWrite&, PutBytes put)> produce,
                        const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

// Elements of one type converted to another. `from` needs no alignment. Between floating types
// values round to nearest even; integers convert to floating types only.
void convert_elements(std::span<const std::byte> from, DType from_dtype, std::span<std::byte> to,
                      DType to_dtype);

}  // namespace bev
