#include "convert/tensor_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "support/expect_error.h"
#include "support/small_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

namespace fs = std::filesystem;

using test::counting_tensor;
using test::expect_error;
using test::small_checkpoint;
using test::SmallCheckpoint;
using test::SmallTensor;
using test::TemporaryDirectory;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

SmallCheckpoint only(const SmallTensor& tensor, int64_t iteration = 1) {
  SmallCheckpoint all = small_checkpoint(iteration, 2, false);
  all.tensors = {tensor};
  return all;
}

TensorComparison compare(const SmallTensor& a, const SmallTensor& b) {
  const TemporaryDirectory root;
  const auto first = open_tensor_source(only(a).write(root / "a"));
  const auto second = open_tensor_source(only(b).write(root / "b"));
  return compare_tensor(*first, *second, a.name);
}

TEST(TensorStatistics, AreThoseOfTheFiniteElements) {
  const TemporaryDirectory root;
  SmallTensor tensor{.name = "t", .dtype = DType::f32, .shape = {2, 3}};
  tensor.values = {-3, kInfinite, 4, std::nan(""), 0, 12};
  const auto source = open_tensor_source(only(tensor).write(root.path()));
  int64_t told = 0;
  const TensorStatistics s =
      statistics_of(*source, "t", [&](int64_t elements) { told += elements; });
  EXPECT_EQ(s.elements, 6);
  EXPECT_EQ(told, 6);
  EXPECT_EQ(s.non_finite, 2);
  EXPECT_EQ(s.norm, 13);
  EXPECT_EQ(s.smallest, -3);
  EXPECT_EQ(s.largest, 12);
}

TEST(TensorStatistics, OfPositiveNumbersHaveAPositiveMinimum) {
  const TemporaryDirectory root;
  SmallTensor tensor{.name = "t", .dtype = DType::f32, .shape = {2}, .values = {5, 4}};
  const auto source = open_tensor_source(only(tensor).write(root.path()));
  EXPECT_EQ(statistics_of(*source, "t").smallest, 4);
}

TEST(TensorComparison, LayoutsDoNotMatter) {
  const TemporaryDirectory root;
  const auto first = open_tensor_source(small_checkpoint(100, 1).write(root / "a"));
  const auto second = open_tensor_source(small_checkpoint(100, 3).write(root / "b"));
  const TensorNames names = match_tensors(*first, *second, true);
  EXPECT_EQ(names.both.size(), 12u);
  EXPECT_EQ(match_tensors(*first, *second, false).both.size(), 3u);
  for (const std::string& name : names.both) {
    const TensorComparison t = compare_tensor(*first, *second, name);
    EXPECT_TRUE(t.is_same()) << name;
    EXPECT_TRUE(t.is_within(0));
    EXPECT_EQ(t.relative, 0);
  }
}

TEST(TensorComparison, CountsAndPlacesDifferences) {
  SmallTensor a{.name = "t", .dtype = DType::f32, .shape = {3, 2}, .values = {0, 0, 0, 3, 0, 4}};
  SmallTensor b = a;
  b.values[3] = 3.5;
  b.values[4] = -1;
  const TensorComparison t = compare(a, b);
  EXPECT_TRUE(t.is_compared);
  EXPECT_FALSE(t.is_same());
  EXPECT_EQ(t.differing, 2);
  EXPECT_EQ(t.largest, 1);
  EXPECT_DOUBLE_EQ(t.relative, std::sqrt(1.25 / (3.5 * 3.5 + 1 + 16)));
  EXPECT_EQ(t.first_row, 1);
  EXPECT_EQ(t.first_column, 1);
  EXPECT_FALSE(t.is_within(0.2));
  EXPECT_TRUE(t.is_within(0.3));
}

TEST(TensorComparison, OtherTypesAreComparedByValue) {
  const SmallTensor a = counting_tensor("t", DType::f32, {6, 2});
  SmallTensor b = a;
  b.dtype = DType::bf16;
  EXPECT_TRUE(compare(a, b).is_same());
  EXPECT_TRUE(compare(a, b).has_other_type());
  SmallTensor fine = a;
  fine.values[5] = 1.0 / 3;
  SmallTensor rounded = fine;
  rounded.dtype = DType::bf16;
  const TensorComparison t = compare(fine, rounded);
  EXPECT_EQ(t.differing, 1);
  EXPECT_EQ(t.first_row, 2);
}

TEST(TensorComparison, BitsCountWhereTypesAreTheSame) {
  SmallTensor a{.name = "t", .dtype = DType::f32, .shape = {2}, .values = {0.0, 1}};
  SmallTensor b = a;
  b.values[0] = -0.0;
  const TensorComparison t = compare(a, b);
  EXPECT_EQ(t.differing, 1);
  EXPECT_EQ(t.largest, 0);
  EXPECT_EQ(t.relative, 0);
  EXPECT_FALSE(t.is_same());
  EXPECT_TRUE(t.is_within(0));
  a.values = b.values = {std::nan(""), kInfinite};
  EXPECT_TRUE(compare(a, b).is_same());
}

TEST(TensorComparison, WhatIsNotFiniteIsNoSmallDifference) {
  SmallTensor a{.name = "t", .dtype = DType::f32, .shape = {2}, .values = {1, 1}};
  for (const double wrong : {std::nan(""), kInfinite}) {
    SmallTensor b = a;
    b.values[1] = wrong;
    for (const TensorComparison& t : {compare(a, b), compare(b, a)}) {
      EXPECT_EQ(t.largest, kInfinite);
      EXPECT_EQ(t.relative, kInfinite);
      EXPECT_FALSE(t.is_within(1e9));
    }
  }
  SmallTensor zero = a;
  zero.values = {0, 0};
  EXPECT_EQ(compare(a, zero).relative, kInfinite);
}

TEST(TensorComparison, PaddedTablesAreComparedAsFarAsBothGo) {
  const SmallTensor a = counting_tensor("embedding.tokens.weight", DType::f32, {6, 2});
  const SmallTensor b = counting_tensor("embedding.tokens.weight", DType::f32, {8, 2});
  for (const TensorComparison& t : {compare(a, b), compare(b, a)}) {
    EXPECT_TRUE(t.is_same());
    EXPECT_TRUE(t.has_other_rows());
    EXPECT_EQ(t.rows, 6);
  }
  const SmallTensor wide = counting_tensor("embedding.tokens.weight", DType::f32, {6, 3});
  EXPECT_FALSE(compare(a, wide).is_compared);
  EXPECT_FALSE(compare(a, wide).is_within(1e9));
  const TensorComparison other =
      compare(counting_tensor("layers.0.mlp.up.weight", DType::f32, {6, 2}),
              counting_tensor("layers.0.mlp.up.weight", DType::f32, {8, 2}));
  EXPECT_FALSE(other.is_compared);
  EXPECT_TRUE(is_vocabulary_table("embedding.tokens.weight/adam.m"));
  EXPECT_TRUE(is_vocabulary_table("query.embedding.tokens.weight"));
  EXPECT_FALSE(is_vocabulary_table("binary_head.weight"));
  EXPECT_FALSE(is_vocabulary_table("embedding.positions.weight"));
}

TEST(TensorComparison, NamesInOneOnly) {
  const TemporaryDirectory root;
  const auto first = open_tensor_source(small_checkpoint(1, 1, true).write(root / "a"));
  SmallCheckpoint without = small_checkpoint(1, 1, false);
  without.tensors.push_back(counting_tensor("new", DType::f32, {1}));
  const auto second = open_tensor_source(without.write(root / "b"));
  const TensorNames names = match_tensors(*first, *second, true);
  EXPECT_EQ(names.both.size(), 3u);
  EXPECT_EQ(names.only_first.size(), 9u);
  EXPECT_EQ(names.only_second, std::vector<std::string>{"new"});
  EXPECT_TRUE(match_tensors(*first, *second, false).only_first.empty());
}

TEST(TensorSource, OpensFilesAndFolders) {
  const TemporaryDirectory root;
  const SmallTensor source = counting_tensor("t", DType::bf16, {4, 3, 2});
  fs::create_directory(root / "model");
  const auto write = [&](const fs::path& path, const std::string& name) {
    write_safetensors(path, {{name, source.dtype, source.shape}},
                      [&](const TensorToWrite&, std::span<std::byte> to) {
                        const auto bytes = source.bytes(whole_of(source.shape), source.dtype);
                        std::copy(bytes.begin(), bytes.end(), to.begin());
                      });
  };
  write(root / "model/a.safetensors", "t");
  write(root / "model/b.safetensors", "u");
  for (const fs::path& path : {root / "model/a.safetensors", root / "model", root.path()}) {
    const auto opened = open_tensor_source(path);
    EXPECT_EQ(opened->manifest(), nullptr);
    EXPECT_EQ(opened->tensors().at("t").shape, source.shape);
    const Rectangle part{.row = 1, .column = 2, .rows = 2, .columns = 3};
    std::vector<std::byte> read(6 * 4);
    opened->read("t", part, DType::f32, read.data());
    EXPECT_EQ(read, source.bytes(part, DType::f32));
  }
  write(root / "model/c.safetensors", "u");
  expect_error(ErrorKind::Data, "\"u\" stands in two files",
               [&] { open_tensor_source(root / "model"); });
  expect_error(ErrorKind::Data, "there is no", [&] { open_tensor_source(root / "none"); });
  fs::create_directory(root / "empty");
  expect_error(ErrorKind::Data, "neither checkpoints nor .safetensors",
               [&] { open_tensor_source(root / "empty"); });
}

}  // namespace
}  // namespace bev
