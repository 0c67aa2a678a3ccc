#include "app/embed/embedding_files.h"

#include <gtest/gtest.h>

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
