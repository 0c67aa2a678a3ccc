#include "eval/perplexity.h"

#include <gtest/gtest.h>

#include "data/token_file_writer.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "text/bpe/gpt2_tokenizer.h"
#include "unit/eval/byte_model.h"
#include "unit/text/tiny_bpe.h"

namespace bev {
namespace {

using test::expect_error;

constexpr int32_t kEod = 256;

EvalText lines(std::string_view text) {
  ByteTokenizer tokenizer;
  return eval_text_of("a.txt", text, DocumentBreak::Line, tokenizer);
}

TextScore scored(test::ByteModel& model, const EvalText& text, const PerplexityRule& rule) {
  const PerplexityWindows windows(text, rule);
  return score_text(model.scorer(), text, windows);
}

// The sum of losses of ids[from...] with all that stands before them.
double nats(test::ByteModel& model, std::vector<int32_t> ids, size_t from) {
  double sum = 0;
  for (; ids.size() > from; ids.pop_back()) sum += model.last(ids).loss;
  return sum;
}

TEST(EvalText, OfDocuments) {
  const EvalText text = lines("ab c\n\n  \nde\u3000f\n");
  ASSERT_EQ(text.documents.size(), 2u);
  EXPECT_TRUE(text.has_text);
  EXPECT_EQ(text.documents[0].begin, 0);
  EXPECT_EQ(text.documents[0].tokens, 5);
  EXPECT_EQ(text.documents[0].bytes, 4);
  EXPECT_EQ(text.documents[0].words, 2);
  EXPECT_EQ(text.documents[1].begin, 5);
  EXPECT_EQ(text.documents[1].tokens, 7);
  EXPECT_EQ(text.documents[1].words, 2);
  EXPECT_EQ(text.stream.size, 12);
  expect_error(ErrorKind::Data, "a.txt: there is no text", [] { lines("\n \n"); });
}

// Where the tokenizer would score another character the byte is named, as the file counts.
TEST(EvalText, OfBytesThatAreNoUtf8) {
  EXPECT_EQ(*lines("a\xFF").ids, (std::vector<int32_t>{'a', 0xFF, kEod}));
  Gpt2Tokenizer tokenizer(test::tiny_vocab({}));
  for (const DocumentBreak documents : {DocumentBreak::Line, DocumentBreak::File}) {
    const auto eval = [&](std::string_view text) {
      return eval_text_of("a.txt", text, documents, tokenizer);
    };
    expect_error(ErrorKind::Data, "a.txt: byte 6 is not UTF-8", [&] { eval("ab\n\nc \xFF d\n"); });
    // Half of a character at the end.
    expect_error(ErrorKind::Data, "a.txt: byte 1 is not UTF-8", [&] { eval("a\xC3"); });
    // One that is in the file is scored.
    EXPECT_NO_THROW(eval("a\uFFFD"));
  }
}

// A token file says the same as the text it was made of, where there is a tokenizer.
TEST(EvalText, OfATokenFile) {
  const test::TemporaryDirectory dir;
  const std::string prefix = dir / "a";
  TokenFileWriter writer(prefix, TokenType::u16);
  for (const char* document : {"ab c", "de f"}) {
    std::vector<int32_t> ids = test::bytes_of(document);
    ids.push_back(kEod);
    writer.add_sequence(ids);
    writer.end_document();
  }
  writer.commit();
  Config config;
  config.model.vocab = 257;
  const ByteTokenizer tokenizer;
  const EvalText text = eval_token_file(prefix, config, &tokenizer);
  ASSERT_EQ(text.documents.size(), 2u);
  EXPECT_EQ(text.documents[1].begin, 5);
  EXPECT_EQ(text.documents[1].tokens, 5);
  EXPECT_EQ(text.documents[1].bytes, 4);
  EXPECT_EQ(text.documents[1].words, 2);
  EXPECT_FALSE(eval_token_file(prefix, config, nullptr).has_text);
}

// Documents get the losses of their own tokens, with those of the one before in sight.
TEST(Perplexity, OfOneWindow) {
  test::ByteModel model;
  const EvalText text = lines("ab c\nde");
  const TextScore score = scored(model, text, {.length = 16, .overlap = 8, .before = kEod});
  std::vector<int32_t> ids{kEod};
  for (const int32_t id : *text.ids) ids.push_back(id);
  EXPECT_EQ(score.tokens, 8);
  EXPECT_NEAR(score.nats, nats(model, ids, 1), 1e-12);
  ASSERT_EQ(score.documents.size(), 2u);
  EXPECT_EQ(score.documents[0].tokens, 5);
  EXPECT_EQ(score.documents[1].tokens, 3);
  EXPECT_NEAR(score.documents[1].nats, nats(model, ids, 6), 1e-12);
}

TEST(Perplexity, OfSeparateDocuments) {
  test::ByteModel model;
  const EvalText text = lines("ab c\nde and much more than a window\nx");
  const PerplexityRule rule{.length = 16, .overlap = 4, .before = kEod, .separate = true};
  const TextScore score = scored(model, text, rule);
  ASSERT_EQ(score.documents.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EvalText alone = text;
    const EvalDocument& document = text.documents[i];
    alone.stream = part_of(text.stream, document.begin, document.tokens);
    alone.documents = {{.begin = 0, .tokens = document.tokens}};
    EXPECT_NEAR(scored(model, alone, rule).nats, score.documents[i].nats, 1e-12);
    EXPECT_EQ(score.documents[i].tokens, document.tokens);
  }
  EXPECT_EQ(score.tokens, text.stream.size);
}

// Without an end of a document in front, the first token of each is not scored, and a document of
// one token not at all.
TEST(Perplexity, WithoutAnEndOfADocument) {
  test::ByteModel model;
  EvalText text = lines("abc\nd");
  text.documents = {
      {.begin = 0, .tokens = 4}, {.begin = 4, .tokens = 1}, {.begin = 5, .tokens = 1}};
  const TextScore whole = scored(model, text, {.length = 16});
  EXPECT_EQ(whole.tokens, 5);
  const TextScore apart = scored(model, text, {.length = 16, .separate = true});
  EXPECT_EQ(apart.tokens, 3);
  EXPECT_EQ(apart.documents[0].tokens, 3);
  EXPECT_EQ(apart.documents[1].tokens, 0);
  EXPECT_EQ(apart.documents[2].tokens, 0);
  text.documents = {{.begin = 0, .tokens = 1}};
  expect_error(ErrorKind::Data, "no document has enough tokens",
               [&] { scored(model, text, {.length = 16, .separate = true}); });
}

TEST(Perplexity, RuleInWords) {
  EXPECT_EQ(rule_in_words({.length = 8, .overlap = 4, .before = 7}),
            "each token is scored once, from those before it in a window of 8 tokens that share 4 "
            "with the window before, where they are scored already; the first one is scored from "
            "id 7, the end of a document");
  EXPECT_EQ(rule_in_words({.length = 8, .separate = true}),
            "each token is scored once, from those before it in a window of 8 tokens that share "
            "none; the first one is not scored, and so in every document, which stands alone");
}

}  // namespace
}  // namespace bev
