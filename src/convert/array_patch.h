// Assembles a parameter from arrays of safetensors files: each patch is a part of one array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "convert/weight_source.h"
#include "tensor/rectangle.h"

namespace bev {

// A safetensors file whose arrays are read in parts, without mapping it: reading takes little
// memory besides the caller's buffer.

class ArrayFile {
 public:
  // Reads and checks the header. Data error.
  explicit ArrayFile(const std::filesystem::path& path);

  // Sorted by name.
  const std::vector<StoredTensor>& arrays() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::filesystem::path& path() const { return file_.path(); }

  // The type of an array of weights. Data error if it is not a floating-point type that this
  // program can read.
  DType float_type(const StoredTensor& array) const;

  // Reads a part of an array and converts it to `dtype`. Rows at `to` are `to_columns` elements
  // apart. REQUIRES: a floating-point array that contains `where`.
  void read(const StoredTensor& array, const Rectangle& where, DType dtype, std::byte* to,
            int64_t to_columns) const;

 private:
  PositionedFile file_;
  SafetensorsHeader header_;
};

// Whether two arrays have the same type, shape and bytes.
bool same_content(const ArrayFile& a_file, const StoredTensor& a, const ArrayFile& b_file,
                  const StoredTensor& b);

struct ArrayPatch {
  Rectangle where;  // in the parameter
  const ArrayFile* file = nullptr;
  const StoredTensor* array = nullptr;
  int64_t row = 0, column = 0;  // begin of the patch in the array, or in its transpose
  bool transposed = false;      // the array stores the transpose
};

// Reads a rectangle of the parameter, converted to `dtype`, row by row without gaps; elements
// without a patch are zero. REQUIRES: patches do not overlap.
void read_patches(std::span<const ArrayPatch> patches, const Rectangle& where, DType dtype,
                  std::byte* to);

// The common type of all patches. Data error that names `parameter` if two differ.
DType common_type(std::span<const ArrayPatch> patches, const std::string& parameter);

// Weights whose parameters are assembled from arrays of files.
class ArrayWeights : public WeightSource {
 public:
  DType dtype_of(const ParamSpec& spec) final { return common_type(patches(spec), spec.name); }
  void read(const ParamSpec& spec, const Rectangle& where, DType dtype, std::byte* to) final {
    read_patches(patches(spec), where, dtype, to);
  }

 protected:
  struct Found {
    const ArrayFile* file = nullptr;
    const StoredTensor* array = nullptr;
  };

  // The patches of a parameter. Data error if one is missing or has another shape.
  virtual std::vector<ArrayPatch> patches(const ParamSpec& spec) = 0;
};

// Transposes a matrix in memory.

// out [columns, rows] = in [rows, columns], elements of `size` bytes.
void transpose_elements(std::span<const std::byte> in, int64_t rows, int64_t columns, size_t size,
                        std::span<std::byte> out);

}  // namespace bev
