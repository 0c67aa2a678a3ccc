#include "data/training_data.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"
#include "unit/data/token_files.h"

namespace bev {
namespace {

using test::expect_error;
using test::Sequence;

class TrainingDataTest : public ::testing::Test {
 protected:
  TrainingDataTest() : config_(test::tiny_gpt()) {
    config_.data.mock = false;
    config_.data.path = {(dir_ / "a").string()};
  }
  // `count` sequences of ten tokens.
  void write(const std::string& name, int count) {
    test::write_tokens(dir_ / name,
                       std::vector<Sequence>(static_cast<size_t>(count), Sequence(10, 3)));
  }

  test::TemporaryDirectory dir_;
  Config config_;
};

TEST_F(TrainingDataTest, DividesOneFile) {
  write("a", 10);
  config_.data.split = "80,10,10";
  const TrainingData data = open_training_data(config_);
  ASSERT_EQ(data.parts.size(), 3u);
  EXPECT_EQ(data.parts[0].range, (SequenceRange{0, 8}));
  EXPECT_EQ(data.parts[0].tokens, 80);
  EXPECT_EQ(data.parts[0].windows, 11);
  EXPECT_EQ(data.parts[2].range, (SequenceRange{9, 10}));
  EXPECT_EQ(data.valid.count, 1);
  EXPECT_EQ(data.test.count, 1);
  EXPECT_TRUE(data.notes.empty());
}

TEST_F(TrainingDataTest, PartsWithoutASampleAreLeftOut) {
  write("a", 10);
  config_.data.split = "100";
  const TrainingData all = open_training_data(config_);
  EXPECT_EQ(all.parts.size(), 1u);
  EXPECT_EQ(all.valid.samples, nullptr);
  EXPECT_TRUE(all.notes.empty());
  config_.data.split = "98,1,1";
  const TrainingData most = open_training_data(config_);
  EXPECT_EQ(most.parts.size(), 1u);
  ASSERT_EQ(most.notes.size(), 2u);
  EXPECT_NE(most.notes[0].find("0 tokens are left for validation"), std::string::npos);
}

TEST_F(TrainingDataTest, NothingToTrainOn) {
  write("a", 1);
  config_.data.split = "0,1,0";
  expect_error(ErrorKind::Data, "leaves nothing for training",
               [&] { open_training_data(config_); });
  config_.data.split = "1";
  config_.train.sequence = 10;
  const std::string message =
      expect_error(ErrorKind::Data, "10 tokens are left for training, fewer than one sample of 10",
                   [&] { open_training_data(config_); });
  EXPECT_NE(message.find((dir_ / "a").string()), std::string::npos);
  test::write_tokens(dir_ / "a", {{}, {}});
  expect_error(ErrorKind::Data, "hold no tokens", [&] { open_training_data(config_); });
}

TEST_F(TrainingDataTest, AFileForEachPart) {
  write("a", 5);
  write("b", 2);
  write("c", 3);
  config_.data.path = {};
  config_.data.train_path = {(dir_ / "a").string()};
  config_.data.valid_path = {(dir_ / "b").string()};
  config_.data.test_path = {(dir_ / "c").string()};
  const TrainingData data = open_training_data(config_);
  ASSERT_EQ(data.parts.size(), 3u);
  EXPECT_EQ(data.parts[1].prefix, dir_ / "b");
  EXPECT_EQ(data.parts[1].tokens, 20);
  EXPECT_EQ(data.valid.count, 2);
  EXPECT_EQ(data.test.count, 4);
}

TEST_F(TrainingDataTest, IdsBeyondTheVocabularyAreFoundBeforeTraining) {
  test::write_tokens(dir_ / "a", {Sequence(20, 1), {28}});
  config_.data.split = "1";
  (void)open_training_data(config_);
  test::write_tokens(dir_ / "a", {Sequence(20, 1), {29}});
  const std::string message = expect_error(ErrorKind::Data, "the largest token id is 29",
                                           [&] { open_training_data(config_); });
  EXPECT_NE(message.find("29 ids (0 to 28)"), std::string::npos) << message;
  EXPECT_NE(message.find("model.vocab 30"), std::string::npos) << message;
  (void)open_training_data(config_, 0);  // too large to be searched: found when it is read
}

TEST_F(TrainingDataTest, MadeUpTokens) {
  config_.data.mock = true;
  config_.eval.iterations = 3;
  const TrainingData data = open_training_data(config_);
  EXPECT_EQ(data.valid.count, 12);
  EXPECT_TRUE(data.parts.empty());
  config_.eval.iterations = 1'000'000'000'000'000;
  EXPECT_GT(open_training_data(config_).valid.count, 0);
}

}  // namespace
}  // namespace bev
