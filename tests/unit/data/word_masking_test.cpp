#include "data/word_masking.h"

#include <gtest/gtest.h>

#include "data/megatron/numpy_random.h"
#include "support/expect_error.h"
#include "unit/data/sentence_files.h"

namespace bev {
namespace {

using test::Sequence;

Sequence sample_of(size_t words) {
  Sequence tokens = test::sentence_of(words);
  tokens.insert(tokens.begin(), test::kClassify);
  tokens.push_back(test::kSeparate);
  return tokens;
}

// The limit is a real number; a whole one is rounded to the even neighbour.
TEST(WordMasking, Limit) {
  EXPECT_DOUBLE_EQ(masking_limit(0.15, 0, 125, 128), 18.75);
  EXPECT_DOUBLE_EQ(masking_limit(0.15, 0, 125, 70), 10);    // 10.5
  EXPECT_DOUBLE_EQ(masking_limit(0.5, 0, 125, 7), 4);       // 3.5
  EXPECT_DOUBLE_EQ(masking_limit(0.15, 0, 2, 5), 0.3);      // no token at all
  EXPECT_DOUBLE_EQ(masking_limit(0.15, 20, 509, 512), 20);  // instead of the target's part
  EXPECT_DOUBLE_EQ(masking_limit(0.15, 90, 509, 512), 77);
}

// Fails when a word is masked in part, a border is predicted, or more than the limit.
TEST(WordMasking, WholeWordsUpToTheLimit) {
  const MaskingVocabulary vocabulary = test::small_vocabulary();
  const Sequence before = sample_of(60);
  WordMasker masker;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Sequence after = before;
    NumpyRandom random(seed);
    const double limit = 1 + seed % 12;
    masker.mask(after, limit, vocabulary, random);
    const std::span<const int32_t> labels = masker.labels();
    ASSERT_EQ(labels.size(), before.size());
    int64_t predicted = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const bool is_predicted = labels[i] >= 0;
      predicted += is_predicted ? 1 : 0;
      EXPECT_EQ(is_predicted ? labels[i] : after[i], before[i]);
      EXPECT_FALSE(is_predicted && (i == 0 || i + 1 == before.size()));
      EXPECT_TRUE(!test::continues_word(before[i]) || is_predicted == (labels[i - 1] >= 0));
      EXPECT_LT(after[i], test::kSmallVocab);
    }
    EXPECT_EQ(predicted, masker.predicted());
    EXPECT_LE(static_cast<double>(predicted), limit);
    EXPECT_GT(predicted, 0);
  }
}

// 80 % [MASK], 10 % another token, 10 % kept; a random token may be the one before.
TEST(WordMasking, PartsOfReplacements) {
  const MaskingVocabulary vocabulary = test::small_vocabulary();
  const Sequence before = sample_of(100);
  WordMasker masker;
  double masks = 0, kept = 0, all = 0;
  NumpyRandom random(3);
  for (int i = 0; i < 2000; ++i) {
    Sequence after = before;
    masker.mask(after, 15, vocabulary, random);
    for (size_t at = 0; at < after.size(); ++at) {
      if (masker.labels()[at] < 0) continue;
      all += 1;
      masks += after[at] == test::kMask ? 1 : 0;
      kept += after[at] == before[at] ? 1 : 0;
    }
  }
  const double again = 0.1 / static_cast<double>(test::kSmallVocab);
  EXPECT_NEAR(masks / all, 0.8 + again, 0.01);
  EXPECT_NEAR(kept / all, 0.1 + again, 0.01);
}

TEST(WordMasking, LengthsOfNgrams) {
  EXPECT_EQ(ngram_words(0), 1);
  EXPECT_EQ(ngram_words(0.545), 1);
  EXPECT_EQ(ngram_words(0.546), 2);
  EXPECT_EQ(ngram_words(0.818), 2);
  EXPECT_EQ(ngram_words(0.819), 3);
  EXPECT_EQ(ngram_words(1 - 0x1p-53), 3);
}

TEST(WordMasking, NothingToMask) {
  WordMasker masker;
  NumpyRandom random(1);
  Sequence tokens{test::kClassify, test::kSeparate};
  masker.mask(tokens, 2, test::small_vocabulary(), random);
  EXPECT_EQ(masker.predicted(), 0);
  EXPECT_EQ(tokens, (Sequence{test::kClassify, test::kSeparate}));
}

TEST(WordMasking, AVocabularyWithoutMasks) {
  test::expect_error(ErrorKind::Data, "bytes: the vocabulary has no [CLS]",
                     [] { (void)masking_vocabulary(ByteTokenizer(), "bytes"); });
}

}  // namespace
}  // namespace bev
