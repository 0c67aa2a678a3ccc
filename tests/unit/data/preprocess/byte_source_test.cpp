#include "data/preprocess/byte_source.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "unit/data/token_files.h"

namespace bev::test {
namespace {

constexpr std::string_view kHello = "hello\nworld\n";

std::string bytes_of_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// What gzip, xz and zstd made of kHello.
std::string gzipped() {
  return bytes_of_hex("1f8b0800000000000203cb48cdc9c9e72acf2fca49e10200ff5dc5c40c000000");
}
std::string xzipped() {
  return bytes_of_hex(
      "fd377a585a000004e6d6b446020021011c00000010cf58cc01000b68656c6c6f0a776f726c640a0087c6ce77ce46"
      "2bae0001240ca618d8d81fb6f37d010000000004595a");
}
std::string zstandard() {
  return bytes_of_hex("28b52ffd240c61000068656c6c6f0a776f726c640ab50e8717");
}

std::vector<std::string> all_compressed() { return {gzipped(), xzipped(), zstandard()}; }

// Read in pieces of a size.
std::string read_all(const std::string& path, size_t piece) {
  ByteSource source(path);
  std::string all;
  std::vector<char> block(piece);
  for (;;) {
    const size_t got = source.read(block);
    all.append(block.data(), got);
    if (got < piece) return all;
  }
}

class ByteSourceTest : public testing::Test {
 protected:
  std::string file(std::string_view content) const {
    write_bytes(directory_ / "file", content);
    return (directory_ / "file").string();
  }
  TemporaryDirectory directory_;
};

TEST_F(ByteSourceTest, PlainBytes) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{5}, size_t{1} << 18, (size_t{1} << 18) + 1, size_t{700'000}}) {
    std::string content(size, '\0');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 7 % 251);
    const std::string path = file(content);
    for (const size_t piece : {size_t{3}, size_t{4096}, size_t{1} << 20})
      if (size / piece < 100'000) {
        EXPECT_EQ(read_all(path, piece), content) << size << " " << piece;
      }
    EXPECT_EQ(size_of_input(path), static_cast<int64_t>(size));
  }
}

TEST_F(ByteSourceTest, CompressedByContentNotByName) {
  for (const std::string& compressed : all_compressed()) {
    const std::string path = file(compressed);
    for (const size_t piece : {1, 5, 12, 13, 4096}) EXPECT_EQ(read_all(path, piece), kHello);
  }
}

TEST_F(ByteSourceTest, SeveralStreamsAreOneFile) {
  for (const std::string& compressed : all_compressed()) {
    const std::string path = file(compressed + compressed + compressed);
    for (const size_t piece : {1, 7, 4096})
      EXPECT_EQ(read_all(path, piece),
                std::string(kHello) + std::string(kHello) + std::string(kHello));
  }
  EXPECT_EQ(read_all(file(gzipped() + std::string(512, '\0')), 100), kHello);
}

// Every cut is found, however little is missing.
TEST_F(ByteSourceTest, TruncatedStreamsAreErrors) {
  for (const std::string& compressed : all_compressed())
    for (size_t size = 6; size < compressed.size(); ++size) {
      const std::string path = file(compressed.substr(0, size));
      expect_error(ErrorKind::Data, "/file: ", [&] { read_all(path, 4096); });
    }
}

TEST_F(ByteSourceTest, DamageIsAnErrorThatNamesTheFile) {
  for (const std::string& compressed : all_compressed()) {
    std::string damaged = compressed;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
    damaged[damaged.size() / 2 + 2] = static_cast<char>(damaged[damaged.size() / 2 + 2] ^ 0x55);
    const std::string path = file(damaged);
    expect_error(ErrorKind::Data, "/file: ", [&] { read_all(path, 4096); });
    const std::string behind = file(compressed + "something else");
    expect_error(ErrorKind::Data, "/file: ", [&] { read_all(behind, 4096); });
  }
}

TEST_F(ByteSourceTest, WhatCannotBeOpened) {
  expect_error(ErrorKind::Data, "none: No such file",
               [&] { const ByteSource source((directory_ / "none").string()); });
  expect_error(ErrorKind::Data, "it is a folder",
               [&] { const ByteSource source(directory_.path().string()); });
  EXPECT_EQ(size_of_input((directory_ / "none").string()), -1);
}

}  // namespace
}  // namespace bev::test
