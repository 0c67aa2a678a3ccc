#include "checkpoint/checkpoint_reader.h"

#include <gtest/gtest.h>

#include <cstring>

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

void expect_read(const CheckpointReader& stored, const SmallTensor& source, const Rectangle& where,
                 DType dtype) {
  const CheckpointReader::Tensor* found = stored.find(source.name);
  ASSERT_NE(found, nullptr) << source.name;
  const std::vector<std::byte> expected = source.bytes(where, dtype);
  // The bytes behind show whether too many are written.
  std::vector<std::byte> actual(expected.size() + 8, std::byte{0x5a});
  stored.read(*found, where, dtype, actual.data());
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), expected.size()), 0)
      << source.name << " " << to_string(source.shape) << " " << where.row << "," << where.column
      << " " << where.rows << "x" << where.columns;
  EXPECT_EQ(actual.back(), std::byte{0x5a});
  EXPECT_EQ(actual[expected.size()], std::byte{0x5a});
}

Rectangle random_rectangle(const Shape& shape, std::mt19937& random) {
  const Rectangle whole = whole_of(shape);
  Rectangle some;
  some.row = static_cast<int64_t>(random()) % whole.rows;
  some.column = static_cast<int64_t>(random()) % whole.columns;
  some.rows = 1 + static_cast<int64_t>(random()) % (whole.rows - some.row);
  some.columns = 1 + static_cast<int64_t>(random()) % (whole.columns - some.column);
  return some;
}

TEST(CheckpointReader, GivesAnyRectangleOfWhatAnyLayoutWrote) {
  constexpr std::array kTypes{DType::f64, DType::f32, DType::bf16, DType::f16};
  std::mt19937 random(1);
  for (int trial = 0; trial < 15; ++trial) {
    SmallCheckpoint source = small_checkpoint(1, 1 + static_cast<int>(random() % 4), false);
    source.tensors.clear();
    for (int t = 0; t < 8; ++t) {
      std::vector<int64_t> extents;
      for (auto rank = random() % 5; rank > 0; --rank)
        extents.push_back(1 + static_cast<int64_t>(random() % 7));
      SmallTensor tensor = counting_tensor("t" + std::to_string(t), kTypes[random() % 4],
                                           make_shape(extents), static_cast<int>(random() % 100));
      for (const Rectangle& piece :
           test::random_cut(tensor.shape, 1 + static_cast<int>(random() % 6), random))
        tensor.shares.push_back(
            {static_cast<int>(random() % static_cast<unsigned>(source.ranks)), piece});
      source.tensors.push_back(tensor);
    }
    const TemporaryDirectory root;
    const CheckpointReader stored(source.write(root.path()));
    EXPECT_EQ(stored.tensors().size(), 8u);
    for (const SmallTensor& tensor : source.tensors) {
      EXPECT_EQ(stored.find(tensor.name)->name, tensor.name);
      EXPECT_EQ(stored.find(tensor.name)->dtype, tensor.dtype);
      EXPECT_EQ(stored.find(tensor.name)->shape, tensor.shape);
      for (int i = 0; i < 8; ++i)
        expect_read(stored, tensor, random_rectangle(tensor.shape, random), kTypes[random() % 4]);
      expect_read(stored, tensor, whole_of(tensor.shape), tensor.dtype);
    }
    stored.verify();
  }
}

// More than is read at once, first unchecked, then checked.
TEST(CheckpointReader, ReadsLargePiecesInPortions) {
  SmallCheckpoint source = small_checkpoint(1, 1, false);
  source.tensors = {counting_tensor("large", DType::f64, {1200, 1024})};
  source.tensors[0].shares = {{0, {.rows = 1200, .columns = 1000}},
                              {0, {.column = 1000, .rows = 1200, .columns = 24}}};
  const TemporaryDirectory root;
  const CheckpointReader stored(source.write(root.path()));
  for (int again = 0; again < 2; ++again) {
    expect_read(stored, source.tensors[0], {.row = 1040, .column = 998, .rows = 20, .columns = 4},
                DType::f32);
    expect_read(stored, source.tensors[0], {.row = 1000, .rows = 150, .columns = 1024}, DType::f64);
  }
}

TEST(CheckpointReader, SaysWhatIsThere) {
  const TemporaryDirectory root;
  const SmallCheckpoint source = small_checkpoint(100, 2);
  const fs::path folder = source.write(root.path());
  const CheckpointReader stored(folder);
  EXPECT_EQ(stored.folder(), folder);
  EXPECT_EQ(stored.manifest().iteration, 100);
  EXPECT_EQ(stored.manifest().files.size(), 5u);
  EXPECT_EQ(stored.find("nothing"), nullptr);
  EXPECT_EQ(stored.find("layers.0.norm1.weight")->bytes(), 8u);
  EXPECT_EQ(stored.find("layers.0.norm1.weight")->parts.size(), 2u);
  EXPECT_EQ(stored.read_file("config.toml"), source.config_toml);
  expect_error(ErrorKind::Data, "there is no file", [&] { stored.read_file("other.toml"); });
  expect_error(ErrorKind::Data, "there is no file",
               [&] { stored.read_file("weights-00000-of-00002.safetensors"); });
  size_t bytes = 0;
  for (const CheckpointFile& file : stored.manifest().files)
    bytes += fs::file_size(folder / file.name);
  EXPECT_EQ(stored.bytes(), bytes);
  EXPECT_EQ(parameter_of("a.b/adam.m"), "a.b");
  EXPECT_EQ(parameter_of("a.b"), "a.b");
  std::byte unused{};
  expect_error(ErrorKind::Internal, "does not have", [&] {
    stored.read(*stored.find("layers.0.norm1.weight"), {.row = 3, .rows = 2, .columns = 1},
                DType::f32, &unused);
  });
}

TEST(CheckpointReader, TellsProgressOfAllData) {
  const TemporaryDirectory root;
  const SmallCheckpoint source = small_checkpoint(100, 2);
  const CheckpointReader stored(source.write(root.path()));
  size_t data = source.config_toml.size(), told = 0;
  for (const auto& [name, tensor] : stored.tensors()) data += tensor.bytes();
  stored.verify([&](size_t bytes) { told += bytes; });
  EXPECT_EQ(told, data);
  told = 0;
  stored.verify([&](size_t bytes) { told += bytes; });
  EXPECT_EQ(told, source.config_toml.size());  // pieces are checked once
}

// Pieces that do not fit together, from ranks that each wrote a good file.
TEST(CheckpointReader, RefusesHolesAndOverlaps) {
  struct Case {
    std::string message;
    std::vector<test::Share> shares;
  };
  const std::vector<Case> cases{
      {"two pieces of \"t\" hold the same elements",
       {{0, {.rows = 4, .columns = 6}}, {1, {.row = 3, .rows = 3, .columns = 6}}}},
      {"two pieces of \"t\" hold the same elements",
       {{0, {.rows = 6, .columns = 6}}, {1, {.row = 2, .column = 2, .rows = 1, .columns = 1}}}},
      {"two pieces of \"t\" hold the same elements",
       {{0, {.rows = 6, .columns = 3}},
        {1, {.column = 3, .rows = 6, .columns = 3}},
        {1, {.row = 5, .column = 2, .rows = 1, .columns = 2}}}},
      {"30 elements are there, 6 are missing",
       {{0, {.rows = 3, .columns = 6}}, {1, {.row = 4, .rows = 2, .columns = 6}}}},
      {"35 elements are there, 1 are missing",
       {{0, {.rows = 5, .columns = 6}}, {1, {.row = 5, .rows = 1, .columns = 5}}}},
  };
  for (const Case& each : cases) {
    SmallCheckpoint source = small_checkpoint(1, 2, false);
    source.tensors = {counting_tensor("t", DType::f32, {6, 6})};
    source.tensors[0].shares = each.shares;
    const TemporaryDirectory root;
    const fs::path folder = source.write(root.path());
    const std::string message =
        expect_error(ErrorKind::Data, each.message, [&] { const CheckpointReader s(folder); });
    EXPECT_NE(message.find("iter_0000001"), std::string::npos) << message;
  }
}

TEST(CheckpointReader, RefusesPiecesOfOtherTensors) {
  for (const bool other_type : {false, true}) {
    SmallCheckpoint source = small_checkpoint(1, 2, false);
    SmallTensor first = counting_tensor("t", DType::f32, {4, 2});
    first.shares = {{0, {.rows = 2, .columns = 2}}};
    SmallTensor second =
        counting_tensor("t", other_type ? DType::bf16 : DType::f32, {other_type ? 4 : 5, 2});
    second.shares = {{1, {.row = 2, .rows = 2, .columns = 2}}};
    source.tensors = {first, second};
    const TemporaryDirectory root;
    const fs::path folder = source.write(root.path());
    expect_error(ErrorKind::Data, "weights-00001-of-00002.safetensors: a piece is of \"t\"",
                 [&] { const CheckpointReader s(folder); });
  }
}

}  // namespace
}  // namespace bev
