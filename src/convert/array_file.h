// A safetensors file whose arrays are read in parts, without mapping it: what is read costs memory
// only where the caller has it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "tensor/rectangle.h"

namespace bev {

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

}  // namespace bev
