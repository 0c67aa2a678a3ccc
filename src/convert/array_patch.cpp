#include "convert/array_patch.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/json.h"

namespace bev {

namespace {

// `part`: in the coordinates of the array, turned.
void read_turned(const ArrayPatch& patch, const Rectangle& part, DType dtype, std::byte* to,
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

void read_patches(std::span<const ArrayPatch> patches, const Rectangle& where, DType dtype,
                  std::byte* to) {
  const size_t size = size_of(dtype);
  int64_t covered = 0;
  for (const ArrayPatch& patch : patches) covered += intersection(patch.where, where).elements();
  if (covered < where.elements())
    std::fill_n(to, static_cast<size_t>(where.elements()) * size, std::byte{0});
  for (const ArrayPatch& patch : patches) {
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

DType common_type(std::span<const ArrayPatch> patches, const std::string& parameter) {
  BEV_CHECK(!patches.empty(), Internal, "{} has no patches", parameter);
  const ArrayPatch& first = patches.front();
  const DType dtype = first.file->float_type(*first.array);
  for (const ArrayPatch& patch : patches)
    BEV_CHECK(patch.file->float_type(*patch.array) == dtype, Data,
              "{}: {} is {} and {} of {} is {}; both are parts of {}, which has one type",
              first.file->path().string(), in_quotes(first.array->name), first.array->dtype_name,
              in_quotes(patch.array->name), patch.file->path().filename().string(),
              patch.array->dtype_name, parameter);
  return dtype;
}

namespace {

template <class T>
void transpose_as(const std::byte* in, int64_t rows, int64_t columns, std::byte* out) {
  constexpr int64_t kTile = 32;  // a tile of both sides stays in the first-level cache
  const T* from = reinterpret_cast<const T*>(in);
  T* to = reinterpret_cast<T*>(out);
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    for (int64_t c0 = 0; c0 < columns; c0 += kTile) {
      for (int64_t c = c0; c < std::min(c0 + kTile, columns); ++c) {
        for (int64_t r = r0; r < std::min(r0 + kTile, rows); ++r) {
          to[c * rows + r] = from[r * columns + c];
        }
      }
    }
  }
}

}  // namespace

void transpose_elements(std::span<const std::byte> in, int64_t rows, int64_t columns, size_t size,
                        std::span<std::byte> out) {
  BEV_CHECK(in.size() == out.size() && in.size() == static_cast<size_t>(rows * columns) * size,
            Internal, "transpose of [{}, {}] between {} and {} bytes", rows, columns, in.size(),
            out.size());
  switch (size) {
    case 2: transpose_as<uint16_t>(in.data(), rows, columns, out.data()); return;
    case 4: transpose_as<uint32_t>(in.data(), rows, columns, out.data()); return;
    case 8: transpose_as<uint64_t>(in.data(), rows, columns, out.data()); return;
    default: throw Error(ErrorKind::Internal, format("transpose of elements of {} bytes", size));
  }
}

namespace {

constexpr size_t kChunkBytes = size_t{8} << 20;

SafetensorsHeader read_header(const PositionedFile& file) {
  const std::string source = file.path().string();
  std::array<std::byte, 8> first{};
  const auto length = std::span(first).first(std::min(first.size(), file.size()));
  file.read(0, length);
  std::vector<std::byte> head(safetensors_data_begin(length, file.size(), source));
  file.read(0, head);
  return parse_safetensors_header(head, file.size(), source);
}

}  // namespace

ArrayFile::ArrayFile(const std::filesystem::path& path)
    : file_(path), header_(read_header(file_)) {}

DType ArrayFile::float_type(const StoredTensor& array) const {
  BEV_CHECK(array.dtype && is_floating(*array.dtype), Data,
            "{}: {} is stored as {}; weights are F64, F32, BF16 or F16", path().string(),
            in_quotes(array.name), array.dtype_name);
  return *array.dtype;
}

void ArrayFile::read(const StoredTensor& array, const Rectangle& where, DType dtype, std::byte* to,
                     int64_t to_columns) const {
  const Rectangle whole = whole_of(array.shape);
  BEV_CHECK(intersection(where, whole) == where && to_columns >= where.columns, Internal,
            "a part of {} {} that it does not have is read", in_quotes(array.name),
            to_string(array.shape));
  if (where.elements() == 0) return;
  const DType stored = float_type(array);
  const size_t size = size_of(stored);
  const auto bytes_in = [&](int64_t columns) { return static_cast<size_t>(columns) * size; };
  // Few columns of long rows are fetched one row at a time, many together with what lies between.
  const bool has_gaps = where.columns * 4 < whole.columns;
  const int64_t span = has_gaps ? where.columns : whole.columns;
  const int64_t first_column = has_gaps ? where.column : 0;
  const int64_t step =
      has_gaps ? 1 : static_cast<int64_t>(std::max<size_t>(1, kChunkBytes / bytes_in(span)));
  std::vector<std::byte> buffer;
  for (int64_t row = 0; row < where.rows; row += step) {
    const int64_t rows = std::min(step, where.rows - row);
    buffer.resize(bytes_in(rows * span));
    file_.read(array.begin + bytes_in((where.row + row) * whole.columns + first_column), buffer);
    for (int64_t r = 0; r < rows; ++r) {
      convert_elements({buffer.data() + bytes_in(r * span + where.column - first_column),
                        bytes_in(where.columns)},
                       stored,
                       {to + static_cast<size_t>((row + r) * to_columns) * size_of(dtype),
                        static_cast<size_t>(where.columns) * size_of(dtype)},
                       dtype);
    }
  }
}

bool same_content(const ArrayFile& a_file, const StoredTensor& a, const ArrayFile& b_file,
                  const StoredTensor& b) {
  if (a.dtype_name != b.dtype_name || a.shape != b.shape) return false;
  const DType dtype = a_file.float_type(a);
  const Rectangle whole = whole_of(a.shape);
  if (whole.elements() == 0) return true;
  const size_t row_bytes = static_cast<size_t>(whole.columns) * size_of(dtype);
  const auto step = static_cast<int64_t>(std::max<size_t>(1, kChunkBytes / row_bytes));
  std::vector<std::byte> left, right;
  for (int64_t row = 0; row < whole.rows; row += step) {
    const Rectangle part{
        .row = row, .rows = std::min(step, whole.rows - row), .columns = whole.columns};
    left.resize(static_cast<size_t>(part.rows) * row_bytes);
    right.resize(left.size());
    a_file.read(a, part, dtype, left.data(), whole.columns);
    b_file.read(b, part, dtype, right.data(), whole.columns);
    if (left != right) return false;
  }
  return true;
}

}  // namespace bev
