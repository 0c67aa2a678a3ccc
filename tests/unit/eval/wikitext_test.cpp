#include "eval/wikitext.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "text/tokenizer.h"

namespace bev {
namespace {

using test::expect_error;

WikitextCorpus corpus_of(std::string_view text, Detokenizer rules = Detokenizer::Wikitext) {
  ByteTokenizer tokenizer;
  return wikitext_corpus("wiki.txt", text, rules, tokenizer);
}

TEST(Wikitext, CountsWordsOfTheOriginal) {
  // Between single spaces: "a", ",", "", "b\nc", "."
  const WikitextCorpus corpus = corpus_of(" a ,  b\nc . \n");
  EXPECT_EQ(corpus.original_words, 5);
  EXPECT_EQ(corpus.text.stream.size, static_cast<int64_t>(std::string(" a,  b\nc. \n").size()) - 1);
  EXPECT_EQ(corpus.text.documents.size(), 1u);
  EXPECT_EQ(corpus_of(" a ,  b\nc . \n", Detokenizer::None).text.stream.size, 13);
}

TEST(Wikitext, LineOfMegatron) {
  const WikitextScore score{.loss = 2.5, .token_ratio = 1.25};
  EXPECT_EQ(megatron_line(score),
            " validation results on WIKITEXT103 | avg loss: 2.5000E+00 | ppl: 1.2182E+01 | "
            "adjusted ppl: 2.2760E+01 | token ratio: 1.25 |");
  EXPECT_NEAR(score.perplexity(), std::exp(2.5), 1e-12);
  // A whole ratio is written as Python does; large losses are cut off.
  EXPECT_EQ(megatron_line({.loss = 30, .token_ratio = 2}),
            " validation results on WIKITEXT103 | avg loss: 3.0000E+01 | ppl: 4.8517E+08 | "
            "adjusted ppl: 4.8517E+08 | token ratio: 2.0 |");
}

TEST(Wikitext, ScoreOfNats) {
  WikitextCorpus corpus = corpus_of("one two three four five", Detokenizer::None);
  const WikitextScore score = wikitext_score(corpus, 44);
  EXPECT_DOUBLE_EQ(score.loss, 2);           // 23 bytes, the first is not scored
  EXPECT_DOUBLE_EQ(score.token_ratio, 5.5);  // 22 of them for 4 words
}

TEST(Wikitext, Refuses) {
  expect_error(ErrorKind::Data, "wiki.txt: byte 2 is not UTF-8", [] { corpus_of("a \xFF b"); });
  expect_error(ErrorKind::Data, "no two words", [] { corpus_of("  one\n"); });
  expect_error(ErrorKind::Data, "no two words", [] { corpus_of(""); });
}

}  // namespace
}  // namespace bev
