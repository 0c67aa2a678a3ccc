#include "eval/masked_perplexity.h"

#include <gtest/gtest.h>

#include <map>

#include "support/expect_error.h"
#include "unit/infer/tiny_berts.h"

namespace bev {
namespace {

using test::expect_error;
using test::StoredBert;

TEST(MaskedPerplexity, LeavesOutSpecialTokensOfATokenFile) {
  const StoredBert stored;
  BertText bert(stored.folder());
  const std::vector<int32_t> ids{2, 5, 6, 3, 2, 7, 3, 0, 8};
  EvalText text{.name = "t", .stream = stream_of(ids)};
  text.documents = {{.begin = 0, .tokens = 7}, {.begin = 7, .tokens = 2}};
  const MaskedText masked = masked_text_of(text, bert);
  EXPECT_EQ(masked.documents, (std::vector<std::vector<int32_t>>{{5, 6, 7}, {8}}));
  text.documents = {{.begin = 0, .tokens = 1}};
  expect_error(ErrorKind::Data, "nothing to score", [&] { masked_text_of(text, bert); });
  expect_error(ErrorKind::Data, "nothing to score",
               [&] { masked_text_of("t", " \n", DocumentBreak::Line, bert); });
  expect_error(ErrorKind::Data, "t: byte 4 is not UTF-8",
               [&] { masked_text_of("t", "a\na \xE4\n", DocumentBreak::Line, bert); });
}

// Fails when a token is masked twice or never, sees itself, or pieces span documents.
TEST(MaskedPerplexity, ScoresEachTokenOnceFromTheOthers) {
  const StoredBert stored;
  BertText bert(stored.folder());
  const std::string lines = "paris is the capital of france .\na\nthe capital\n";
  const MaskedText text = masked_text_of("t", lines, DocumentBreak::Line, bert);
  const MaskingRule rule{.length = 7, .every = 3};
  EXPECT_EQ(count_pieces(text, rule), 4);
  LoadedModel model = stored.load(2, 7);
  EncoderPass pass(model);
  const TextScore score = score_masked(pass, text, bert, rule);
  ASSERT_EQ(score.documents.size(), 3U);
  EXPECT_EQ(score.tokens, 10);
  EXPECT_EQ(score.documents[0].tokens, 7);
  EXPECT_EQ(score.documents[1].tokens, 1);

  // By hand: the first document has the pieces 5 6 7 8 9 and 10 11, masked at 0 3, 1 4 and 2.
  std::vector<EncoderInput> inputs;
  const auto add = [&](std::vector<int32_t> ids, std::vector<int32_t> marked) {
    EncoderInput input{.ids = bert.wrapped(ids), .marked = std::move(marked)};
    for (const int32_t at : input.marked) {
      input.targets.push_back(input.ids[static_cast<size_t>(at)]);
      input.ids[static_cast<size_t>(at)] = bert.mask();
    }
    inputs.push_back(std::move(input));
  };
  add({5, 6, 7, 8, 9}, {1, 4});
  add({5, 6, 7, 8, 9}, {2, 5});
  add({5, 6, 7, 8, 9}, {3});
  add({10, 11}, {1});
  add({10, 11}, {2});
  double expected = 0;
  pass.losses(inputs, [&](size_t, size_t, double nats) { expected += nats; }, [](int64_t) {});
  EXPECT_NEAR(score.documents[0].nats, expected, 1e-9);
  EXPECT_NEAR(score.nats,
              score.documents[0].nats + score.documents[1].nats + score.documents[2].nats, 1e-12);
}

TEST(MaskedPerplexity, SaysItsRule) {
  EXPECT_NE(rule_in_words(MaskingRule{.length = 512, .every = 7})
                .find("every 7. token of its piece masked"),
            std::string::npos);
}

}  // namespace
}  // namespace bev
