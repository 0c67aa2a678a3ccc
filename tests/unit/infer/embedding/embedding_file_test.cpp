#include "infer/embedding/embedding_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "support/expect_error.h"
#include "unit/infer/embedding/written_embeddings.h"

namespace bev {
namespace {

using test::expect_error;
using test::TemporaryDirectory;
using test::write_embeddings;

std::string npy_with(std::string_view dictionary, size_t data_bytes) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(dictionary.size());
  text += '\x00';
  return text + std::string(dictionary) + std::string(data_bytes, '\0');
}

NpyHeader parse(const std::string& file) {
  return parse_npy_header(std::as_bytes(std::span(file)), file.size(), "e.npy");
}

TEST(EmbeddingFile, HasTheRowsThatWereWritten) {
  const TemporaryDirectory dir;
  std::vector<float> values(15);
  std::iota(values.begin(), values.end(), -3.5f);
  write_embeddings(dir / "e.npy", 5, 3, values);
  const EmbeddingFile file(dir / "e.npy");
  EXPECT_EQ(file.rows(), 5);
  EXPECT_EQ(file.width(), 3);
  const std::span<const float> two = file.read(2, 4);
  EXPECT_TRUE(std::equal(two.begin(), two.end(), values.begin() + 6, values.begin() + 12));
  file.prefetch(0, 5);
  file.release(0, 5);
  EXPECT_EQ(file.read(4, 5)[2], values.back());
}

// As numpy.lib.format describes version 1.0.
TEST(NpyHeader, IsAlignedAndEndsItsLine) {
  for (const int64_t rows : {1, 999999999}) {
    const std::string header = npy_header(rows, 768);
    ASSERT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    EXPECT_EQ(header.size() % 64, 0U);
    EXPECT_EQ(static_cast<unsigned char>(header[8]) + 256 * static_cast<unsigned char>(header[9]),
              static_cast<int>(header.size() - 10));
    EXPECT_EQ(header.back(), '\n');
    EXPECT_EQ(header.substr(10, 11), "{'descr': '");
  }
}

// Notations that other programs write.
TEST(NpyHeader, ReadsOtherNotations) {
  const NpyHeader found =
      parse(npy_with("{\"descr\":\"<f4\",\"fortran_order\":False, 'shape' : (2,3,)}  \n", 24));
  EXPECT_EQ(found.rows, 2);
  EXPECT_EQ(found.width, 3);
  std::string second("\x93NUMPY\x02\x00\x44\x00\x00\x00", 12);
  second += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }         \n";
  second.resize(12 + 0x44 + 8);
  EXPECT_EQ(parse(second).data_begin, 80U);
}

// Fails when a file is mapped whose rows are not where the header puts them.
TEST(NpyHeader, RefusesEverythingElse) {
  constexpr size_t kBytes = 102;
  std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}";
  good.resize(kBytes, ' ');
  EXPECT_EQ(parse(npy_with(good, 24)).rows, 2);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text(good);
    text.replace(text.find(from), from.size(), to);
    text.resize(kBytes, ' ');
    return npy_with(text, 24);
  };
  const auto expect_refused = [](std::string_view message, const std::string& file) {
    expect_error(ErrorKind::Data, std::string(message), [&] { parse(file); });
  };
  expect_refused("is not a NumPy file", "");
  expect_refused("is not a NumPy file", "{\"text\": 1}\n and more of it");
  expect_refused("20 bytes after the header are not 2 rows of 3 float32", npy_with(good, 20));
  expect_refused("25 bytes after the header", npy_with(good, 25));
  expect_refused("36 bytes after the header", npy_with(good, 36));
  expect_refused("12 bytes after the header", npy_with(good, 12));
  constexpr std::string_view kExpected = "expected an array [rows, width] of float32";
  expect_refused(kExpected, with("<f4", "<f8"));
  expect_refused(kExpected, with("<f4", ">f4"));
  expect_refused(kExpected, with("False", "True "));
  expect_refused(kExpected, with("(2, 3)", "(6,)"));
  expect_refused(kExpected, with("(2, 3)", "(2, 3, 1)"));
  expect_refused(kExpected, with("(2, 3)", "(0, 3)"));
  expect_refused(kExpected, with("(2, 3)", "(2, -3)"));
  expect_refused(kExpected, with("(2, 3)", "(2, 9223372036854775808)"));
  expect_refused(kExpected, with("(2, 3)}", "(2, 3)} or"));
  expect_refused("rows of 4611686018427387904 float32", with("(2, 3)", "(2, 4611686018427387904)"));
  expect_refused("are not 4611686018427387904 rows", with("(2, 3)", "(4611686018427387904, 4)"));
  expect_refused("version 9", "\x93NUMPY\x09" + npy_with(good, 24).substr(7));
  expect_refused("its header has 102 bytes", npy_with(good, 24).substr(0, 60));
  expect_refused("begin at byte 111", npy_with(good.substr(0, kBytes - 1), 24));
}

}  // namespace
}  // namespace bev
