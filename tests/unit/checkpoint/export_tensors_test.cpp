#include "checkpoint/export_tensors.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/small_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

namespace fs = std::filesystem;

using test::expect_error;
using test::small_checkpoint;
using test::SmallCheckpoint;
using test::SmallTensor;
using test::TemporaryDirectory;

void expect_holds(const SafetensorsReader& reader, const SmallTensor& source) {
  const StoredTensor& found = reader.at(source.name);
  EXPECT_EQ(found.shape, source.shape);
  EXPECT_EQ(found.dtype, source.dtype);
  const std::vector<std::byte> expected = source.bytes(whole_of(source.shape), source.dtype);
  const std::span<const std::byte> actual = reader.bytes(found);
  EXPECT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin(), expected.end()));
}

TEST(ExportTensors, WritesWholeTensorsOfAnyLayout) {
  const TemporaryDirectory root;
  SmallCheckpoint source = small_checkpoint(100, 3);
  std::mt19937 random(5);
  for (SmallTensor& tensor : source.tensors)
    for (const Rectangle& piece : test::random_cut(tensor.shape, 5, random))
      tensor.shares.push_back({static_cast<int>(random() % 3), piece});
  const CheckpointReader stored(source.write(root / "run"));
  size_t told = 0;
  const Exported weights =
      export_tensors(stored, root / "w.safetensors", {}, [&](size_t bytes) { told += bytes; });
  EXPECT_EQ(weights.tensors, 3u);
  EXPECT_EQ(weights.bytes, 120u);
  EXPECT_EQ(told, 120u);
  EXPECT_EQ(SafetensorsReader(root / "w.safetensors").tensors().size(), 3u);

  export_tensors(stored, root / "all.safetensors", {.with_optimizer = true});
  const SafetensorsReader reader(root / "all.safetensors");
  EXPECT_EQ(reader.tensors().size(), 12u);
  for (const SmallTensor& tensor : source.tensors) expect_holds(reader, tensor);
}

TEST(ExportTensors, DividesAFolderIntoFiles) {
  const TemporaryDirectory root;
  const SmallCheckpoint source = small_checkpoint(100, 2);
  const CheckpointReader stored(source.write(root / "run"));
  const Exported done =
      export_tensors(stored, root / "out", {.with_optimizer = true, .file_bytes = 200});
  EXPECT_GT(done.files.size(), 3u);
  const Json index = read_json(root / "out/tensors.safetensors.index.json");
  EXPECT_EQ(index.at("metadata").at("total_size"), done.bytes);
  EXPECT_EQ(index.at("weight_map").size(), 12u);
  for (const SmallTensor& tensor : source.tensors) {
    const std::string file = index.at("weight_map").at(tensor.name);
    expect_holds(SafetensorsReader(root / "out" / file), tensor);
  }
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(root / "out")) ++entries;
  EXPECT_EQ(entries, done.files.size() + 1);
}

TEST(ExportTensors, SparesWhatIsThere) {
  const TemporaryDirectory root;
  const fs::path folder = small_checkpoint(100, 1).write(root / "run");
  const CheckpointReader stored(folder);
  expect_error(ErrorKind::Usage, "lies in the checkpoint",
               [&] { export_tensors(stored, folder / "w.safetensors", {}); });
  expect_error(ErrorKind::Usage, "lies in the checkpoint",
               [&] { export_tensors(stored, folder, {}); });
  expect_error(ErrorKind::Usage, "is there already",
               [&] { export_tensors(stored, root / "run", {}); });
  fs::create_directory(root / "a.safetensors");
  expect_error(ErrorKind::Usage, "is there already",
               [&] { export_tensors(stored, root / "a.safetensors", {}); });
  EXPECT_NO_THROW(CheckpointReader(folder).verify());
}

// Damage is found while the file is being made, and then there is none.
TEST(ExportTensors, OfDamagedDataLeavesNothing) {
  const TemporaryDirectory root;
  const fs::path folder = small_checkpoint(100, 1, false).write(root / "run");
  const fs::path file = folder / "weights-00000-of-00001.safetensors";
  std::string content = read_text(file);
  content.back() = static_cast<char>(content.back() ^ 1);
  AtomicFile damaged(file);
  damaged.write(content);
  damaged.commit();
  const CheckpointReader stored(folder);
  expect_error(ErrorKind::Data, "does not have its checksum",
               [&] { export_tensors(stored, root / "w.safetensors", {}); });
  expect_error(ErrorKind::Data, "does not have its checksum",
               [&] { export_tensors(stored, root / "out", {}); });
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(root.path())) ++entries;
  EXPECT_EQ(entries, 1u);
}

TEST(StreamSafetensors, WantsAllBytesAndNoMore) {
  const TemporaryDirectory root;
  const std::vector<std::byte> bytes(9);
  for (const size_t count : {size_t{7}, size_t{9}})
    expect_error(ErrorKind::Internal, "a.safetensors", [&] {
      stream_safetensors(root / "a.safetensors", {{"a", DType::f32, {2}}},
                         [&](const TensorToWrite&, PutBytes put) {
                           put(std::span(bytes).first(4));
                           put(std::span(bytes).first(count - 4));
                         });
    });
  EXPECT_TRUE(fs::is_empty(root.path()));
}

}  // namespace
}  // namespace bev
