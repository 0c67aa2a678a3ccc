#include "eval/span_perplexity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/expect_error.h"
#include "support/tiny_models.h"
#include "unit/data/sentence_files.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

// Documents one after the other, as a token file or a text gives them.
EvalText text_of(const std::vector<Ids>& documents) {
  const auto ids = std::make_shared<Ids>();
  EvalText text{.name = "t", .ids = ids};
  for (const Ids& document : documents) {
    text.documents.push_back({.begin = std::ssize(*ids), .tokens = std::ssize(document)});
    ids->insert(ids->end(), document.begin(), document.end());
  }
  text.stream = stream_of(*ids);
  return text;
}

const SpanVocabulary& vocabulary() {
  static const SpanVocabulary vocabulary = test::small_span_vocabulary(10);
  return vocabulary;
}

// The text before its spans were replaced.
Ids original(const T5Texts& texts) {
  Ids text;
  for (const int32_t id : texts.encoder) {
    if (id < test::kSmallVocab) {
      text.push_back(id);
      continue;
    }
    auto at = std::find(texts.targets.begin(), texts.targets.end(), id);
    EXPECT_NE(at, texts.targets.end());
    while (++at != texts.targets.end() && *at >= test::kFirstWord && *at < test::kSmallVocab)
      text.push_back(*at);
  }
  return text;
}

// Fails when a piece spans documents, a token is lost, or special tokens of a file are scored.
TEST(SpanPerplexity, PiecesHaveTheTokensOfTheirDocument) {
  Ids first = test::sentence_of(25), whole = first;
  first.insert(first.begin(), {test::kClassify, test::kPad});
  first.push_back(test::kSeparate);
  const Ids second = test::sentence_of(3, 7);
  const SpanRule rule{.length = 12, .most_decoder_tokens = 64, .masked = 0.3};
  const SpanText text = span_text_of(text_of({first, {test::kPad}, second}), vocabulary(), rule);
  EXPECT_EQ(text.documents, (std::vector<size_t>{0, 0, 0, 2}));
  EXPECT_EQ(text.document_count, 3U);
  EXPECT_EQ(text.tokens, 28);
  EXPECT_EQ(text.without_room, 0);
  Ids found;
  for (size_t i = 0; i < 3; ++i) {
    const Ids piece = original(text.samples[i]);
    EXPECT_EQ(piece.size(), i < 2 ? 10U : 5U);
    found.insert(found.end(), piece.begin(), piece.end());
    EXPECT_LE(std::ssize(text.samples[i].decoder), rule.decoder_length());
  }
  EXPECT_EQ(found, whole);
  EXPECT_EQ(original(text.samples[3]), second);
  // A short text has a masked token, too.
  EXPECT_EQ(text.samples[3].targets.size(), 3U);
  test::expect_error(ErrorKind::Data, "nothing to score",
                     [&] { span_text_of(text_of({{test::kPad}}), vocabulary(), rule); });
}

// Fails when a score cannot be repeated, or a seed is ignored.
TEST(SpanPerplexity, TheSeedDecides) {
  const EvalText text = text_of({test::sentence_of(200)});
  const auto encoders = [&](uint64_t seed) {
    const SpanRule rule{.length = 22, .most_decoder_tokens = 64, .seed = seed};
    std::vector<Ids> all;
    for (const T5Texts& sample : span_text_of(text, vocabulary(), rule).samples)
      all.push_back(sample.encoder);
    return all;
  };
  EXPECT_EQ(encoders(1), encoders(1));
  EXPECT_NE(encoders(1), encoders(2));
  // Nor have all pieces the same spans.
  std::set<ptrdiff_t> first_sentinels;
  for (const Ids& ids : encoders(1))
    first_sentinels.insert(std::find(ids.begin(), ids.end(), test::kSmallVocab) - ids.begin());
  EXPECT_GT(first_sentinels.size(), 1U);
}

// A decoder that is too short for all spans leaves them in the text.
TEST(SpanPerplexity, SpansWithoutRoomAreCounted) {
  const EvalText text = text_of({test::sentence_of(200)});
  const SpanText whole =
      span_text_of(text, vocabulary(), {.length = 42, .most_decoder_tokens = 64, .masked = 0.3});
  const SpanText cut =
      span_text_of(text, vocabulary(), {.length = 42, .most_decoder_tokens = 6, .masked = 0.3});
  EXPECT_EQ(whole.without_room, 0);
  EXPECT_GT(cut.without_room, 0);
  EXPECT_LE(cut.longest_decoder(), 6);
  EXPECT_GT(whole.longest_decoder(), 6);
}

// Fails when samples of a batch have another loss than each alone, or places that are not used
// count.
TEST(SpanPerplexity, ScoresAreThoseOfSingleSamples) {
  ModelFolder folder;
  folder.is_fresh = true;
  folder.config = test::tiny_t5();
  folder.config.model.vocab = vocabulary().ids;
  folder.config.model.positions = 40;
  folder.config.train.decoder_sequence = 32;
  const SpanRule rule{.length = 20, .most_decoder_tokens = 40, .masked = 0.3};
  const SpanText text = span_text_of(
      text_of({test::sentence_of(50), test::sentence_of(4, 3), test::sentence_of(21, 5)}),
      vocabulary(), rule);
  ASSERT_EQ(text.samples.size(), 6U);
  const DeviceConfig device{.kind = DeviceKind::Reference, .threads = 1};
  LoadedModel model(folder, device, 4, rule.length), single(folder, device, 1, rule.length);
  const SpanScore all = score_spans(model, text, test::kPad);
  EXPECT_TRUE(all.samples.empty());
  const SpanScore one_by_one = score_spans(single, text, test::kPad);
  ASSERT_EQ(one_by_one.samples.size(), text.samples.size());
  int64_t targets = 0;
  double nats = 0;
  for (size_t i = 0; i < text.samples.size(); ++i) {
    HostBatch batch;
    batch.resize(1, single.placed().spec.batch);
    put_t5_texts(text.samples[i], test::kPad, batch, 0);
    batch.number_rows(0, 0);
    EXPECT_EQ(one_by_one.samples[i], single.executor().evaluate({&batch, 1}).front().sum);
    targets += std::ssize(text.samples[i].targets);
    nats += one_by_one.samples[i];
  }
  EXPECT_EQ(all.targets, targets);
  EXPECT_EQ(one_by_one.targets, targets);
  EXPECT_NEAR(all.nats, nats, 1e-12 * nats);
}

// Fails when rows that only pad the vocabulary, as they do on tensor ranks, are in the softmax.
TEST(SpanPerplexity, PaddingOfTheVocabularyIsNoClass) {
  ModelFolder folder;
  folder.is_fresh = true;
  folder.config = test::tiny_t5();
  folder.config.model.vocab = vocabulary().ids;
  folder.config.train.decoder_sequence = 16;
  const SpanText text = span_text_of(text_of({test::sentence_of(8)}), vocabulary(),
                                     {.length = 10, .most_decoder_tokens = 16, .masked = 0.3});
  const auto nats = [&](int64_t multiple) {
    folder.config.model.vocab_multiple = multiple;
    LoadedModel model(folder, {.kind = DeviceKind::Reference, .threads = 1}, 1, 10);
    EXPECT_EQ(model.placed().shape.padded_vocab % multiple, 0);
    return score_spans(model, text, test::kPad).nats;
  };
  EXPECT_EQ(nats(64), nats(1));
}

}  // namespace
}  // namespace bev
