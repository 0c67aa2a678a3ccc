#include "convert/array_patch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;
using test::TemporaryDirectory;

// A file with "matrix", 6 x 40, whose elements count from 0, and its like under other types.
class Patches : public testing::Test {
 protected:
  Patches() {
    write_safetensors(
        dir / "a.safetensors",
        {{"matrix", DType::f32, {6, 40}}, {"half", DType::bf16, {2}}, {"ids", DType::i32, {2}}},
        [](const TensorToWrite& out, std::span<std::byte> to) {
          if (out.name != "matrix") return;
          std::vector<float> values(240);
          std::iota(values.begin(), values.end(), 0.0f);
          std::memcpy(to.data(), values.data(), to.size());
        });
  }
  const StoredTensor& array(const ArrayFile& file, const std::string& name) {
    for (const StoredTensor& each : file.arrays())
      if (each.name == name) return each;
    throw std::out_of_range(name);
  }

  TemporaryDirectory dir;
};

// Fails when few columns (read row by row), many, or all of them are fetched from a wrong place.
TEST_F(Patches, AnyPartOfAnArrayIsRead) {
  const ArrayFile file(dir / "a.safetensors");
  for (const Rectangle& where :
       {Rectangle{0, 0, 6, 40}, Rectangle{2, 5, 3, 4}, Rectangle{1, 3, 4, 30},
        Rectangle{5, 39, 1, 1}, Rectangle{3, 0, 2, 40}}) {
    std::vector<double> values(static_cast<size_t>(where.rows) * 50, -1);
    file.read(array(file, "matrix"), where, DType::f64, reinterpret_cast<std::byte*>(values.data()),
              50);
    for (int64_t row = 0; row < where.rows; ++row)
      for (int64_t column = 0; column < 50; ++column)
        EXPECT_EQ(values[static_cast<size_t>(row * 50 + column)],
                  column < where.columns
                      ? static_cast<double>((where.row + row) * 40 + where.column + column)
                      : -1);
  }
  expect_error(ErrorKind::Internal, "does not have", [&] {
    std::vector<float> values(40);
    file.read(array(file, "matrix"), {6, 0, 1, 40}, DType::f32,
              reinterpret_cast<std::byte*>(values.data()), 40);
  });
}

// A parameter of 8 x 8: its first rows are columns 2 to 9 of the array, turned behind them, nothing
// at the end. Every part of it must be what the whole says.
TEST_F(Patches, EveryPartIsAPartOfTheWhole) {
  const ArrayFile file(dir / "a.safetensors");
  const StoredTensor& matrix = array(file, "matrix");
  const std::vector<ArrayPatch> patches{
      {.where = {.rows = 3, .columns = 8}, .file = &file, .array = &matrix, .row = 1, .column = 2},
      {.where = {.row = 3, .rows = 4, .columns = 6},
       .file = &file,
       .array = &matrix,
       .row = 10,
       .transposed = true},
      {.where = {.row = 3, .column = 6, .rows = 4, .columns = 2},
       .file = &file,
       .array = &matrix,
       .row = 20,
       .column = 4,
       .transposed = true}};
  const auto expected = [](int64_t row, int64_t column) -> float {
    if (row < 3) return static_cast<float>((row + 1) * 40 + column + 2);
    if (row == 7) return 0;
    return static_cast<float>(column < 6 ? column * 40 + row - 3 + 10
                                         : (column - 6 + 4) * 40 + row - 3 + 20);
  };
  for (int64_t row = 0; row < 8; ++row) {
    for (int64_t rows = 1; row + rows <= 8; ++rows) {
      for (int64_t column = 0; column < 8; ++column) {
        for (int64_t columns = 1; column + columns <= 8; ++columns) {
          std::vector<float> values(static_cast<size_t>(rows * columns), -1);
          read_patches(patches, {row, column, rows, columns}, DType::f32,
                       reinterpret_cast<std::byte*>(values.data()));
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c)
              ASSERT_EQ(values[static_cast<size_t>(r * columns + c)],
                        expected(row + r, column + c));
        }
      }
    }
  }
}

TEST_F(Patches, OneParameterHasOneType) {
  const ArrayFile file(dir / "a.safetensors");
  const StoredTensor &matrix = array(file, "matrix"), &half = array(file, "half");
  const std::vector<ArrayPatch> both{{.where = {}, .file = &file, .array = &matrix},
                                     {.where = {}, .file = &file, .array = &half}};
  EXPECT_EQ(common_type(std::span(both).first(1), "p"), DType::f32);
  EXPECT_EQ(common_type(std::span(both).last(1), "p"), DType::bf16);
  expect_error(ErrorKind::Data, "parts of p", [&] { common_type(both, "p"); });
  expect_error(ErrorKind::Data, "is stored as I32", [&] { file.float_type(array(file, "ids")); });
}

}  // namespace
}  // namespace bev
