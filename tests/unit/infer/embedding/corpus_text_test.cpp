#include "infer/embedding/corpus_text.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

std::vector<std::string> texts_of(const CorpusText& corpus, int64_t begin, int64_t end) {
  std::vector<std::string> texts;
  corpus.read(begin, end, [&](int64_t i, std::string_view text) {
    EXPECT_EQ(i, begin + std::ssize(texts));
    texts.emplace_back(text);
  });
  return texts;
}

TEST(CorpusText, LinesAreTextsAlsoEmptyOnes) {
  const CorpusText corpus("a b\r\n\nc", "t", {});
  EXPECT_EQ(corpus.count(), 3);
  EXPECT_EQ(texts_of(corpus, 0, 3), (std::vector<std::string>{"a b", "", "c"}));
  EXPECT_EQ(CorpusText("a\n\n", "t", {}).count(), 2);
  EXPECT_NE(CorpusText("a\n", "t", {}).checksum(), CorpusText("a", "t", {}).checksum());
  expect_error(ErrorKind::Data, "t is empty", [] { CorpusText("", "t", {}); });
  expect_error(ErrorKind::Data, "t, line 2: byte 3 is not UTF-8",
               [] { CorpusText("\xC3\xA4\na \xE4\nb", "t", {}); });
}

// Fails when a text is looked for from the wrong line of the index.
TEST(CorpusText, FindsTextsOfALongFile) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += std::to_string(i) + "\n";
  const CorpusText corpus(bytes, "t", {});
  ASSERT_EQ(corpus.count(), 1000);
  for (const int64_t i : {0, 255, 256, 257, 511, 512, 999})
    EXPECT_EQ(corpus.text(i), std::to_string(i));
  EXPECT_EQ(texts_of(corpus, 300, 303), (std::vector<std::string>{"300", "301", "302"}));
  EXPECT_TRUE(texts_of(corpus, 1000, 1000).empty());
}

TEST(CorpusText, TakesAKeyOfJsonl) {
  const CorpusText corpus("{\"text\": \"a\\nb\", \"id\": 1}\n{\"id\": 2, \"text\": \"\"}\n", "t",
                          {.is_jsonl = true});
  EXPECT_EQ(texts_of(corpus, 0, 2), (std::vector<std::string>{"a\nb", ""}));
  const auto expect_refused = [](std::string_view message, std::string_view second) {
    const std::string bytes = "{\"body\": \"a\"}\n" + std::string(second);
    expect_error(ErrorKind::Data, std::string(message),
                 [&] { CorpusText(bytes, "t.jsonl", {.is_jsonl = true, .key = "body"}); });
  };
  expect_refused("t.jsonl, line 2: there is no key \"body\"", "{\"text\": \"a\"}\n");
  expect_refused("line 2", "\n");
  expect_refused("line 2: a list of texts", "{\"body\": [\"a\"]}\n");
}

}  // namespace
}  // namespace bev
