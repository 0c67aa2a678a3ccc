// Whatever happens to the files of a checkpoint is noticed, and the message names the file.
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "checkpoint/checkpoint_reader.h"
#include "support/expect_error.h"
#include "support/small_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

namespace fs = std::filesystem;

using test::expect_error;
using test::small_checkpoint;
using test::TemporaryDirectory;

void put(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// The message of whoever noticed; empty: nobody.
std::string complaint(const fs::path& folder) {
  try {
    CheckpointReader(folder).verify();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Data) << error.what();
    return error.what();
  }
  return "";
}

class CheckpointDamage : public testing::Test {
 protected:
  TemporaryDirectory root_;
  const fs::path folder_ = small_checkpoint(3, 2, false).write(root_.path());
};

TEST_F(CheckpointDamage, NothingIsWrongAtFirst) {
  EXPECT_EQ(complaint(folder_), "");
  EXPECT_EQ(files_in(folder_).size(), 5u);
}

TEST_F(CheckpointDamage, EveryFlippedByteIsFound) {
  for (const fs::path& file : files_in(folder_)) {
    const std::string good = read_text(file);
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
      put(file, bad);
      const std::string message = complaint(folder_);
      ASSERT_NE(message.find(file.filename().string()), std::string::npos)
          << file << " at " << at << ": " << message;
    }
    put(file, good);
  }
  EXPECT_EQ(complaint(folder_), "");
}

TEST_F(CheckpointDamage, EveryOtherLengthIsFound) {
  for (const fs::path& file : files_in(folder_)) {
    const std::string good = read_text(file);
    for (size_t length = 0; length < good.size(); length += 1 + good.size() / 97) {
      put(file, good.substr(0, length));
      const std::string message = complaint(folder_);
      ASSERT_NE(message.find(file.filename().string()), std::string::npos)
          << file << " of " << length << " bytes: " << message;
    }
    put(file, good + " ");
    EXPECT_NE(complaint(folder_).find(file.filename().string()), std::string::npos) << file;
    put(file, good);
  }
}

TEST_F(CheckpointDamage, EveryMissingFileIsNamed) {
  for (const fs::path& file : files_in(folder_)) {
    fs::rename(file, root_ / "aside");
    EXPECT_NE(complaint(folder_).find(file.filename().string()), std::string::npos) << file;
    fs::create_directory(file);
    EXPECT_NE(complaint(folder_).find(file.filename().string()), std::string::npos) << file;
    fs::remove(file);
    fs::rename(root_ / "aside", file);
  }
}

// The sizes of files that hold no pieces are looked at before anything is read.
TEST_F(CheckpointDamage, SizesAreCheckedFirst) {
  put(folder_ / "config.toml", "x");
  expect_error(ErrorKind::Data, "config.toml has 1 bytes",
               [&] { const CheckpointReader stored(folder_); });
}

TEST_F(CheckpointDamage, ExchangedFilesAreFound) {
  const fs::path a = folder_ / "weights-00000-of-00002.safetensors";
  const fs::path b = folder_ / "weights-00001-of-00002.safetensors";
  ASSERT_EQ(fs::file_size(a), fs::file_size(b));
  const std::string content = read_text(a);
  put(a, read_text(b));
  put(b, content);
  EXPECT_NE(complaint(folder_).find("weights-00000-of-00002"), std::string::npos);
}

// Reading a part of a damaged piece fails even where the part itself is good, and does so again.
TEST_F(CheckpointDamage, ReadingNoticesToo) {
  const fs::path file = folder_ / "weights-00000-of-00002.safetensors";
  std::string content = read_text(file);
  content.back() = static_cast<char>(content.back() ^ 1);
  put(file, content);
  const CheckpointReader stored(folder_);
  const CheckpointReader::Tensor& tensor = *stored.find("layers.0.norm1.weight");
  std::vector<std::byte> to(8);
  for (int again = 0; again < 2; ++again)
    expect_error(ErrorKind::Data, "\"layers.0.norm1.weight\" at 0, 0 does not have its checksum",
                 [&] { stored.read(tensor, {.rows = 1, .columns = 1}, DType::f64, to.data()); });
  stored.read(tensor, {.row = 2, .rows = 2, .columns = 1}, DType::f32, to.data());
}

}  // namespace
}  // namespace bev
