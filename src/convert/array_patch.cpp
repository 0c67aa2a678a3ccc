#include "convert/array_patch.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/json.h"
#include "convert/transpose.h"

namespace bev {

namespace {

// `part`: in the coordinates of the array, turned.
void read_turned(const Patch& patch, const Rectangle& part, DType dtype, std::byte* to,
                 int64_t to_columns) {
  const size_t size = size_of(dtype);
  const Rectangle stored{
      .row = part.column, .column = part.row, .rows = part.columns, .columns = part.rows};
  std::vector<std::byte> values(static_cast<size_t>(part.elements()) * size), turned(values.size());
  patch.file->read(*patch.array, stored, dtype, values.data(), stored.columns);
  transpose_elements(values, stored.rows, stored.columns, size, turned);
  const size_t row_bytes = static_cast<size_t>(part.columns) * size;
  for (int64_t row = 0; row < part.rows; ++row)
    std::memcpy(to + static_cast<size_t>(row * to_columns) * size,
                turned.data() + static_cast<size_t>(row) * row_bytes, row_bytes);
}

}  // namespace

void read_patches(std::span<const Patch> patches, const Rectangle& where, DType dtype,
                  std::byte* to) {
  const size_t size = size_of(dtype);
  int64_t covered = 0;
  for (const Patch& patch : patches) covered += intersection(patch.where, where).elements();
  if (covered < where.elements())
    std::fill_n(to, static_cast<size_t>(where.elements()) * size, std::byte{0});
  for (const Patch& patch : patches) {
    const Rectangle both = intersection(patch.where, where);
    if (both.elements() == 0) continue;
    const Rectangle part{.row = both.row - patch.where.row + patch.row,
                         .column = both.column - patch.where.column + patch.column,
                         .rows = both.rows,
                         .columns = both.columns};
    std::byte* into = to + static_cast<size_t>((both.row - where.row) * where.columns +
                                               both.column - where.column) *
                               size;
    if (patch.transposed) {
      read_turned(patch, part, dtype, into, where.columns);
    } else {
      patch.file->read(*patch.array, part, dtype, into, where.columns);
    }
  }
}

DType common_type(std::span<const Patch> patches, const std::string& parameter) {
  BEV_CHECK(!patches.empty(), Internal, "{} has no patches", parameter);
  const Patch& first = patches.front();
  const DType dtype = first.file->float_type(*first.array);
  for (const Patch& patch : patches)
    BEV_CHECK(patch.file->float_type(*patch.array) == dtype, Data,
              "{}: {} is {} and {} of {} is {}; both are parts of {}, which has one type",
              first.file->path().string(), in_quotes(first.array->name), first.array->dtype_name,
              in_quotes(patch.array->name), patch.file->path().filename().string(),
              patch.array->dtype_name, parameter);
  return dtype;
}

}  // namespace bev
