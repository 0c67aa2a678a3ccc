// A parameter put together from arrays of files: each patch of it is a part of one array.
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

// A safetensors file whose arrays are read in parts, without mapping it: what is read costs memory
// only where the caller has it.

class ArrayFile {
 public:
  // Reads and checks the header. Data error.
  explicit ArrayFile(const std::filesystem::path& path);

  // Sorted by name.
  const std::vector<StoredTensor>& arrays() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::filesystem::path& path() const { return file_.path(); }

  // The type of an array of weights. Data error when it holds whole numbers or is of a type that
  // this program cannot read.
  DType float_type(const StoredTensor& array) const;

  // A part of an array, converted. Rows in memory are `to_columns` elements apart. REQUIRES: a
  // floating type; the part lies within the array.
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
  int64_t row = 0, column = 0;  // where it begins in the array, or in the array turned
  bool transposed = false;      // the array is stored turned
};

// The elements of a rectangle of the parameter, converted, row by row without gaps; zeros where
// there is no patch. REQUIRES: patches do not overlap.
void read_patches(std::span<const ArrayPatch> patches, const Rectangle& where, DType dtype,
                  std::byte* to);

// The type that all patches are stored in. Data error when two differ, naming `parameter`.
DType common_type(std::span<const ArrayPatch> patches, const std::string& parameter);

// Weights whose parameters are put together from arrays of files.
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

  // The parts of the parameter. Data error when one is missing or has another shape.
  virtual std::vector<ArrayPatch> patches(const ParamSpec& spec) = 0;
};

// Turning a matrix that lies in memory.

// out [columns, rows] = in [rows, columns], elements of `size` bytes.
void transpose_elements(std::span<const std::byte> in, int64_t rows, int64_t columns, size_t size,
                        std::span<std::byte> out);

}  // namespace bev
