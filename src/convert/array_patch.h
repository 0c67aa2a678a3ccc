// A parameter put together from arrays of files: each patch of it is a part of one array.
#pragma once

#include <span>

#include "convert/array_file.h"

namespace bev {

struct Patch {
  Rectangle where;  // in the parameter
  const ArrayFile* file = nullptr;
  const StoredTensor* array = nullptr;
  int64_t row = 0, column = 0;  // where it begins in the array, or in the array turned
  bool transposed = false;      // the array is stored turned
};

// The elements of a rectangle of the parameter, converted, row by row without gaps; zeros where
// there is no patch. REQUIRES: patches do not overlap.
void read_patches(std::span<const Patch> patches, const Rectangle& where, DType dtype,
                  std::byte* to);

// The type that all patches are stored in. Data error when two differ, naming `parameter`.
DType common_type(std::span<const Patch> patches, const std::string& parameter);

}  // namespace bev
