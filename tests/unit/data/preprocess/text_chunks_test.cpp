#include <gtest/gtest.h>

#include <random>

#include "data/preprocess/text_reader.h"
#include "support/temporary_directory.h"
#include "unit/data/token_files.h"

namespace bev::test {
namespace {

class TextChunksTest : public testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view content) const {
    write_bytes(directory_ / name, content);
    return (directory_ / name).string();
  }
  TemporaryDirectory directory_;
};

std::vector<TextChunk> chunks_of(const std::vector<std::string>& inputs,
                                 const TextChunks::Options& options) {
  TextChunks chunks(inputs, options);
  std::vector<TextChunk> all;
  TextChunk chunk;
  while (chunks.next(chunk)) all.push_back(chunk);
  return all;
}

// Whatever the size of a chunk, the same lines with the same numbers come out.
TEST_F(TextChunksTest, WholeLinesOfAnySize) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::string content;
    std::vector<std::string> lines;
    for (size_t n = random() % 30; n > 0; --n) {
      lines.push_back(std::string(random() % 40, 'a' + static_cast<char>(n % 26)) + "\n");
      content += lines.back();
    }
    if (random() % 2 == 0) {
      lines.push_back("no end");
      content += lines.back();
    }
    const std::string path = file("a", content);
    for (const size_t size : {4, 16, 64, 1 << 20}) {
      size_t line = 0;
      for (const TextChunk& chunk : chunks_of({path}, {.chunk = size})) {
        EXPECT_EQ(chunk.first_line, static_cast<int64_t>(line) + 1);
        for (std::string_view rest = chunk.text; !rest.empty(); ++line) {
          ASSERT_LT(line, lines.size());
          ASSERT_TRUE(rest.starts_with(lines[line]));
          rest.remove_prefix(lines[line].size());
        }
      }
      EXPECT_EQ(line, lines.size());
    }
  }
}

TEST_F(TextChunksTest, ChunksDoNotCrossFiles) {
  const auto all = chunks_of({file("a", "one\ntwo"), file("empty", ""), file("b", "three\n")}, {});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].text, "one\ntwo");
  EXPECT_EQ(all[1].text, "three\n");
  EXPECT_EQ(all[1].input, 2u);
  EXPECT_EQ(all[1].first_line, 1);
  EXPECT_EQ(all[1].taken, 13);
}

TEST_F(TextChunksTest, AByteOrderMarkIsNoText) {
  EXPECT_EQ(chunks_of({file("a", "\xEF\xBB\xBFtext\n")}, {}).at(0).text, "text\n");
  EXPECT_EQ(chunks_of({file("a", "\xEF\xBB\xBF")}, {}).size(), 0u);
}

TEST_F(TextChunksTest, ParagraphsAndFilesStayWhole) {
  const std::string path = file("a", "a\nb\n\nc\nd\n \t\n\ne\n");
  std::string all;
  for (const TextChunk& chunk :
       chunks_of({path}, {.records = DocumentBreak::Paragraph, .chunk = 4})) {
    all += chunk.text;
    // What follows begins a paragraph.
    EXPECT_TRUE(chunk.text.ends_with("\n\n") || chunk.text.ends_with("\t\n") ||
                chunk.text.ends_with("e\n"))
        << chunk.text;
  }
  EXPECT_EQ(all, "a\nb\n\nc\nd\n \t\n\ne\n");
  EXPECT_EQ(chunks_of({path}, {.records = DocumentBreak::File, .chunk = 4}).size(), 1u);
}

TEST_F(TextChunksTest, LinesThatAreTooLongAreSetAside) {
  const std::string path =
      file("a", "short\n" + std::string(100'000, 'x') + "\nafter\n" + std::string(9'000, 'y'));
  const auto all = chunks_of({path}, {.chunk = 64, .longest_record = 8192});
  int64_t found = 0;
  std::string kept;
  for (const TextChunk& chunk : all) {
    if (chunk.cut_record == 0) {
      kept += chunk.text;
      continue;
    }
    EXPECT_EQ(chunk.cut_record, found == 0 ? 100'000 : 9'000);
    EXPECT_EQ(chunk.first_line, found == 0 ? 2 : 4);
    EXPECT_EQ(chunk.text.size(), 4096u);
    ++found;
  }
  EXPECT_EQ(found, 2);
  EXPECT_EQ(kept, "short\nafter\n");
  // One that just fits is a line.
  EXPECT_EQ(
      chunks_of({file("b", std::string(8191, 'x') + "\n")}, {.chunk = 64, .longest_record = 8192})
          .at(0)
          .text.size(),
      8192u);
}

}  // namespace
}  // namespace bev::test
