#include "app/embed/embedding_files.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "support/temporary_directory.h"

namespace bev::app {
namespace {

using test::TemporaryDirectory;

const std::vector<std::vector<float>> kVectors{{0.5f, -1.25f, 3e-8f}, {0.1f, 2, 7}};

// Fails when a value loses bits, or a text breaks the line.
TEST(EmbeddingFiles, ALineHasTheFloatsExactly) {
  const std::string line = embedding_line("a \"b\"\n\xff", 4, 0, kVectors[1]);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Json json = parse_json(line, "line");
  EXPECT_EQ(json["tokens"], 4);
  EXPECT_FALSE(json.contains("cut"));
  ASSERT_EQ(json["embedding"].size(), 3U);
  EXPECT_EQ(static_cast<float>(json["embedding"][0].get<double>()), 0.1f);
  EXPECT_EQ(parse_json(embedding_line("", 2, 7, kVectors[0]), "line")["cut"], 7);
}

// The header as numpy.lib.format describes version 1.0.
TEST(EmbeddingFiles, NpyHasAnAlignedHeaderAndTheRows) {
  const TemporaryDirectory dir;
  write_npy(dir / "e.npy", kVectors);
  const std::string file = read_text(dir / "e.npy");
  ASSERT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t header =
      static_cast<unsigned char>(file[8]) + 256 * static_cast<unsigned char>(file[9]);
  EXPECT_EQ((10 + header) % 64, 0U);
  EXPECT_EQ(file[10 + header - 1], '\n');
  EXPECT_TRUE(
      file.substr(10).starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  ASSERT_EQ(file.size(), 10 + header + 6 * sizeof(float));
  float values[6];
  std::memcpy(values, file.data() + 10 + header, sizeof values);
  EXPECT_EQ(values[1], -1.25f);
  EXPECT_EQ(values[3], 0.1f);
}

TEST(EmbeddingFiles, SafetensorsHasTheRows) {
  const TemporaryDirectory dir;
  write_embedding_tensor(dir / "e.safetensors", kVectors);
  const SafetensorsReader reader(dir / "e.safetensors");
  EXPECT_EQ(reader.at("embeddings").shape, (Shape{2, 3}));
  EXPECT_EQ(reader.read_f64(reader.at("embeddings")),
            (std::vector<double>{0.5, -1.25, 3e-8f, 0.1f, 2, 7}));
}

}  // namespace
}  // namespace bev::app
