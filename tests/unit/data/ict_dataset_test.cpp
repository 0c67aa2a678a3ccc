#include "data/ict_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/megatron/python_random.h"
#include "data/training_data.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"
#include "unit/data/sentence_files.h"

namespace bev {
namespace {

using test::Documents;
using test::expect_error;
using test::sentence_of;
using Ids = std::vector<int32_t>;

// What Python gives.
TEST(PythonRandom, KnownNumbers) {
  PythonRandom small(1234);
  EXPECT_EQ(small.random(), 0.9664535356921388);
  EXPECT_EQ(small.integer(0, 7), 3);
  EXPECT_EQ(small.integer(0, 1), 0);
  EXPECT_EQ(small.integer(0, 1000), 7);
  EXPECT_EQ(small.random(), 0.090643606416701883);
  PythonRandom large(1234567890123);  // two words
  EXPECT_EQ(large.random(), 0.8225316907510454);
  EXPECT_EQ(large.integer(10, 17), 11);
}

// Five documents; the second has one sentence, the fourth an overlong one.
const Documents kTexts{
    {sentence_of(4), sentence_of(5, 2), sentence_of(3, 6), sentence_of(6, 9)},
    {sentence_of(9)},
    {sentence_of(2), sentence_of(2, 5), sentence_of(4, 1), sentence_of(3, 3), sentence_of(5, 8)},
    {sentence_of(513), sentence_of(3)},
    {sentence_of(7, 1), sentence_of(4, 9)}};
const Documents kTitles{{sentence_of(1, 1)},
                        {sentence_of(2, 2)},
                        {sentence_of(3, 3)},
                        {sentence_of(1, 4)},
                        {sentence_of(4, 5)}};

class IctDatasetTest : public ::testing::Test {
 protected:
  IctDatasetTest()
      : spec_{.part = {.documents = {0, 5}, .seed = 77},
              .sequence = 16,
              .query_in_block = 0.4,
              .vocab = test::kSmallVocab,
              .classify = test::kClassify,
              .separate = test::kSeparate,
              .pad = test::kPad} {
    write_titles(kTitles);
  }

  void write_titles(const Documents& titles) {
    test::write_documents(dir_ / "titles", titles);
    spec_.titles = std::make_shared<const TokenFile>(dir_ / "titles");
  }
  IctDataset dataset() {
    test::write_documents(dir_ / "a", kTexts);
    return {std::make_shared<const TokenFile>(dir_ / "a"), spec_};
  }
  IctDataset megatron_dataset(SequenceRange documents, bool single_sentences) {
    spec_.part = {.documents = documents, .order = SampleOrder::Megatron, .wanted = 7, .seed = 77};
    spec_.single_sentences = single_sentences;
    return dataset();
  }

  test::TemporaryDirectory dir_;
  IctSamplesSpec spec_;
};

using Block = IctDataset::Block;

// Megatron-LM's, computed by a separate program from the same rules.
TEST_F(IctDatasetTest, MegatronOrder) {
  const IctDataset samples = megatron_dataset({0, 5}, false);
  const std::vector<Block> blocks{{0, 4, 0, 0},   {5, 10, 2, 1},  {5, 10, 2, 1},
                                  {12, 14, 4, 2}, {12, 14, 4, 2}, {5, 10, 2, 1},
                                  {0, 4, 0, 0},   {12, 14, 4, 2}, {0, 4, 0, 0}};
  ASSERT_EQ(samples.count(), std::ssize(blocks));
  EXPECT_EQ(samples.epoch_samples(), 3);
  for (size_t i = 0; i < blocks.size(); ++i)
    EXPECT_EQ(samples.block(static_cast<int64_t>(i)), blocks[i]);
  // The last first: the numbers of a sample are known at once.
  EXPECT_EQ(samples.texts(6).query, (Ids{2, 14, 15, 16, 17, 18, 19, 3}));
  EXPECT_EQ(samples.texts(6).context, (Ids{2, 6, 3, 5, 6, 7, 8, 7, 8, 9, 10, 11, 11, 12, 13, 3}));
  EXPECT_EQ(samples.texts(3).query, (Ids{2, 6, 7, 8, 9, 10, 11, 12, 3}));
  EXPECT_EQ(samples.texts(3).context,
            (Ids{2, 10, 11, 12, 13, 3, 6, 7, 8, 9, 10, 11, 12, 14, 15, 3}));
}

// Titles are counted from the first document of a split, as in Megatron-LM.
TEST_F(IctDatasetTest, MegatronTitlesOfAnotherSplit) {
  const IctDataset samples = megatron_dataset({2, 5}, false);
  EXPECT_EQ(samples.block(2), (Block{12, 14, 2, 1}));
  EXPECT_FALSE(samples.query(6).stays);
  EXPECT_EQ(samples.texts(6).query, (Ids{2, 5, 6, 3}));
  EXPECT_EQ(samples.texts(6).context, (Ids{2, 6, 3, 10, 11, 6, 7, 8, 9, 8, 9, 10, 13, 14, 15, 3}));
}

TEST_F(IctDatasetTest, MegatronSingleSentences) {
  const IctDataset samples = megatron_dataset({0, 5}, true);
  ASSERT_EQ(samples.count(), 12);
  EXPECT_EQ(samples.block(3), (Block{3, 4, 0, 1}));
  EXPECT_EQ(samples.block(10), (Block{5, 9, 2, 3}));
  EXPECT_EQ(samples.texts(3).context, (Ids{2, 6, 3, 14, 15, 16, 17, 18, 19, 3}));
  EXPECT_EQ(samples.texts(6).context, (Ids{2, 10, 11, 12, 13, 3, 14, 15, 16, 17, 3}));
}

// Each block once per epoch, with the title of its document; the query is one of its sentences and
// stays in it as often as asked.
TEST_F(IctDatasetTest, ArithmeticOrder) {
  const IctDataset samples = dataset();
  ASSERT_EQ(samples.count(), 4);
  double stays = 0;
  std::set<int64_t> sentences;
  for (int64_t epoch = 0; epoch < 500; ++epoch) {
    std::set<int64_t> begins;
    for (int64_t i = 4 * epoch; i < 4 * epoch + 4; ++i) {
      const Block& block = samples.block(i);
      begins.insert(block.begin);
      const IctDataset::Query query = samples.query(i);
      EXPECT_GE(query.sentence, block.begin);
      EXPECT_LT(query.sentence, block.end);
      sentences.insert(query.sentence);
      stays += query.stays ? 1 : 0;
      EXPECT_EQ(samples.source(i).pieces.front().sequence, query.sentence);
      EXPECT_EQ(samples.source(i).epoch, epoch);
    }
    EXPECT_EQ(begins.size(), 4u);
  }
  EXPECT_NEAR(stays / 2000, 0.4, 0.04);
  EXPECT_EQ(sentences.size(), 13u);  // all but the one of the second document
  // A block of the third document: all but the query, with the title.
  int64_t i = 0;
  while (samples.block(i).title != 2 || samples.query(i).stays) ++i;
  Ids wanted{test::kClassify, 8, 9, 10, test::kSeparate};
  for (int64_t s = 5; s < 10; ++s) {
    const Ids& sentence = kTexts[2][static_cast<size_t>(s - 5)];
    if (s != samples.query(i).sentence)
      wanted.insert(wanted.end(), sentence.begin(), sentence.end());
  }
  wanted.resize(15);
  wanted.resize(std::min<size_t>(wanted.size(), samples.texts(i).context.size() - 1));
  wanted.push_back(test::kSeparate);
  EXPECT_EQ(samples.texts(i).context, wanted);
}

// The only sentence of a block stays in it.
TEST_F(IctDatasetTest, SingleSentences) {
  spec_.single_sentences = true;
  spec_.query_in_block = 0;
  const IctDataset samples = dataset();
  for (int64_t i = 0; i < samples.count(); ++i) {
    const Block& block = samples.block(i);
    EXPECT_EQ(samples.query(i).stays, block.end - block.begin == 1);
  }
}

// A title that is longer than a sample leaves no room for the block.
TEST_F(IctDatasetTest, LongTitlesAreCut) {
  write_titles(Documents(5, {sentence_of(30)}));
  Ids wanted = sentence_of(13);
  wanted.insert(wanted.begin(), test::kClassify);
  wanted.insert(wanted.end(), 2, test::kSeparate);
  EXPECT_EQ(dataset().texts(0).context, wanted);
}

TEST_F(IctDatasetTest, WithoutTitles) {
  spec_.titles = nullptr;
  const IctDataset samples = dataset();
  for (int64_t i = 0; i < samples.count(); ++i) {
    const Ids& context = samples.texts(i).context;
    EXPECT_EQ(context.front(), test::kClassify);
    EXPECT_EQ(std::count(context.begin(), context.end(), test::kSeparate), 1);
  }
}

TEST_F(IctDatasetTest, Batches) {
  const IctDataset samples = dataset();
  HostBatch batch;
  batch.resize(2, query_context_batch(16));
  samples.read(5, batch, 1);
  const IctTexts& texts = samples.texts(5);
  for (const auto& [text, ids] : {std::pair{&batch.text(kQueryText), &texts.query},
                                  std::pair{&batch.text(kContextText), &texts.context}}) {
    Ids padded = *ids;
    padded.resize(16, test::kPad);
    EXPECT_EQ(Ids(text->tokens.begin() + 16, text->tokens.end()), padded);
    EXPECT_EQ(text->lengths[1], std::ssize(*ids));
    EXPECT_EQ(text->pooled[1], 16);
    EXPECT_EQ(text->types[16], 0);
    EXPECT_EQ(text->rows[16], 5 * 16);
  }
}

// Through the configuration.
class IctDataTest : public ::testing::Test {
 protected:
  IctDataTest() : config_(test::tiny_bert()) {
    config_.model.family = ModelFamily::Biencoder;
    config_.data.mock = false;
    config_.data.path = {(dir_ / "a_sentence").string()};
    config_.data.titles_path = (dir_ / "titles").string();
    config_.data.split = "60,40";
    config_.data.tokenizer = TokenizerKind::BertLower;
    config_.data.vocab_file = (dir_ / "vocab.txt").string();
    config_.model.vocab = test::kSmallVocab;
    config_.train.sequence = 16;
    test::write_small_vocabulary(config_.data.vocab_file);
    test::write_documents(dir_ / "a_sentence", kTexts);
    test::write_documents(dir_ / "titles", kTitles);
  }

  test::TemporaryDirectory dir_;
  Config config_;
};

TEST_F(IctDataTest, DividesDocuments) {
  const TrainingData data = open_training_data(config_);
  ASSERT_EQ(data.parts.size(), 2u);
  EXPECT_EQ(data.parts[0].range, (SequenceRange{0, 10}));
  EXPECT_EQ(data.parts[0].windows, 2);
  EXPECT_EQ(data.titles, config_.data.titles_path);
  ASSERT_EQ(data.notes.size(), 2u);
  EXPECT_NE(data.notes[0].find("1 of 5 documents have a single sentence"), std::string::npos);
  EXPECT_NE(data.notes[1].find("1 sentences are longer"), std::string::npos);
  config_.data.order = SampleOrder::Megatron;
  EXPECT_NE(open_training_data(config_).notes[1].find("more than 512 tokens"), std::string::npos);
}

TEST_F(IctDataTest, NotesOnTitles) {
  Documents titles = kTitles;
  titles[1] = {};
  titles[3] = {sentence_of(14)};
  test::write_documents(dir_ / "titles", titles);
  const TrainingData data = open_training_data(config_);
  ASSERT_EQ(data.notes.size(), 4u);
  EXPECT_NE(data.notes[0].find("1 of 5 titles are empty"), std::string::npos);
  EXPECT_NE(data.notes[1].find("1 of 5 titles are longer than a sample of 16"), std::string::npos);
}

TEST_F(IctDataTest, BadFiles) {
  const auto open = [&] { (void)open_training_data(config_); };
  Documents titles = kTitles;
  titles.pop_back();
  test::write_documents(dir_ / "titles", titles);
  expect_error(ErrorKind::Data, "has 4 titles, but", open);
  titles.push_back({{test::kSmallVocab}});
  test::write_documents(dir_ / "titles", titles);
  expect_error(ErrorKind::Data, "the largest token id is 25", open);
  config_.data.titles_path.clear();
  open();
  test::write_documents(dir_ / "a_sentence", Documents(5, {sentence_of(9)}));
  expect_error(ErrorKind::Data, "--use-one-sent-docs", open);
  config_.data.single_sentences = true;
  open();
}

}  // namespace
}  // namespace bev
