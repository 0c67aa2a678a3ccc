// Blends and orders of samples as a configuration asks for them.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "data/data_loader.h"
#include "data/megatron/megatron_blend.h"
#include "data/megatron/megatron_dataset.h"
#include "data/megatron/megatron_samplers.h"
#include "data/training_data.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"
#include "unit/data/token_files.h"

namespace bev {
namespace {

using test::expect_error;
using test::Sequence;

// Three files of sequences of ten tokens; samples have seven.
class BlendedDataTest : public ::testing::Test {
 protected:
  BlendedDataTest() : config_(test::tiny_gpt()) {
    config_.data.mock = false;
    config_.data.split = "100";
    config_.model.vocab = 29;
    write("a", 36, 0);  // 51 windows
    write("b", 15, 8);  // 21 windows
    write("c", 8, 16);  // 11 windows
  }

  std::string path(const std::string& name) const { return (dir_ / name).string(); }

  // Tokens that count through eight ids from `first` on.
  void write(const std::string& name, int count, int32_t first) {
    std::vector<Sequence> sequences;
    int32_t next = 0;
    for (int i = 0; i < count; ++i) {
      Sequence sequence(10);
      for (int32_t& id : sequence) id = first + next++ % 8;
      sequences.push_back(sequence);
    }
    test::write_tokens(dir_ / name, sequences);
  }

  std::vector<int32_t> tokens_of(const Dataset& samples, int64_t index) const {
    HostBatch batch;
    batch.resize(1, 7, false);
    samples.read(index, batch, 0);
    EXPECT_EQ(batch.rows.front(), index * 7);
    std::vector<int32_t> tokens = batch.tokens;
    tokens.push_back(batch.targets.back());
    return tokens;
  }

  // The place of a sample: file, sequence and offset.
  using Place = std::tuple<std::string, int64_t, int64_t>;
  static Place place_of(const Dataset& samples, int64_t index) {
    const SampleSource source = samples.source(index);
    return {source.file, source.pieces.front().sequence, source.pieces.front().offset};
  }

  test::TemporaryDirectory dir_;
  Config config_;
};

TEST_F(BlendedDataTest, EachFileHasItsShareAndIsReadWindowByWindow) {
  config_.data.path = {"0.5", path("a"), "0.3", path("b"), "0.2", path("c")};
  const TrainingData data = open_training_data(config_);
  ASSERT_EQ(data.parts.size(), 3u);
  EXPECT_DOUBLE_EQ(data.parts[1].share, 0.3);
  const std::map<std::string, std::pair<double, size_t>> facts{
      {path("a"), {0.5, 51}}, {path("b"), {0.3, 21}}, {path("c"), {0.2, 11}}};
  std::map<std::string, std::vector<Place>> seen;
  for (int64_t i = 0; i < 700; ++i) {
    const Place place = place_of(*data.train, i);
    seen[std::get<0>(place)].push_back(place);
    for (const auto& [file, fact] : facts)
      EXPECT_LT(std::abs(fact.first * static_cast<double>(i + 1) -
                         static_cast<double>(seen[file].size())),
                1.0);
  }
  for (const auto& [file, fact] : facts) {
    const std::vector<Place>& places = seen[file];
    std::set<std::vector<Place>> epochs;
    for (size_t begin = 0; begin + fact.second <= places.size(); begin += fact.second) {
      const std::vector<Place> epoch(places.begin() + static_cast<ptrdiff_t>(begin),
                                     places.begin() + static_cast<ptrdiff_t>(begin + fact.second));
      EXPECT_EQ(std::set<Place>(epoch.begin(), epoch.end()).size(), fact.second) << file;
      EXPECT_TRUE(epochs.insert(epoch).second) << file << ": two epochs alike";
    }
  }
}

TEST_F(BlendedDataTest, WithoutWeightsEverythingOncePerEpoch) {
  config_.data.path = {path("a"), path("b"), path("c")};
  const TrainingData data = open_training_data(config_);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<Place> places;
    for (int64_t i = 0; i < 83; ++i) places.insert(place_of(*data.train, 83 * epoch + i));
    EXPECT_EQ(places.size(), 83u);
  }
}

// Far out at once, and the same whoever asks: a loader that starts there and ranks that take turns.
TEST_F(BlendedDataTest, StartsAnywhere) {
  config_.data.path = {"0.5", path("a"), "0.3", path("b"), "0.2", path("c")};
  const TrainingData data = open_training_data(config_);
  constexpr int64_t kFar = 10'000'000'000;
  std::vector<int32_t> all;
  for (int64_t i = kFar; i < kFar + 8; ++i) {
    const auto tokens = tokens_of(*data.train, i);
    all.insert(all.end(), tokens.begin(), tokens.end() - 1);
  }
  for (const int64_t ranks : {1, 2, 4}) {
    const SamplerShape shape{.total = kFar + 8, .micro_batch = 8 / ranks, .ranks = ranks};
    std::vector<int32_t> together;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto batches = single_batches(shape, kFar, rank, true);
      for (const int64_t sample : batches.at(0)) {
        const auto tokens = tokens_of(*data.train, sample);
        together.insert(together.end(), tokens.begin(), tokens.end() - 1);
      }
    }
    EXPECT_EQ(together, all) << ranks;
  }
  DataLoader loader(
      data.train,
      {.schedule = BatchSchedule(8), .micro_batch = 8, .fields = causal_batch(7, false)},
      {.position = kFar, .consumed = kFar});
  EXPECT_EQ(loader.next().front().tokens, all);
}

TEST_F(BlendedDataTest, TheSameFileTwiceHasTwoOrders) {
  config_.data.path = {"1", path("a"), "1", path("a")};
  const TrainingData data = open_training_data(config_);
  int same = 0;
  for (int64_t i = 0; i < 100; i += 2)
    same += place_of(*data.train, i) == place_of(*data.train, i + 1) ? 1 : 0;
  EXPECT_LT(same, 10);
}

TEST_F(BlendedDataTest, HeldSamplesStopBeforeAFileBeginsAgain) {
  config_.data.path = {"0.5", path("a"), "0.5", path("c")};
  config_.data.split = "50,50,0";
  const TrainingData data = open_training_data(config_);
  ASSERT_NE(data.valid.samples, nullptr);
  std::set<Place> places;
  for (int64_t i = 0; i < data.valid.count; ++i) places.insert(place_of(*data.valid.samples, i));
  EXPECT_EQ(static_cast<int64_t>(places.size()), data.valid.count);
  EXPECT_GE(data.valid.count, 10);  // c has five windows here
  EXPECT_LE(data.valid.count, 11);
}

TEST_F(BlendedDataTest, PartsOfABlendWithoutASampleAreSaid) {
  test::write_tokens(dir_ / "d", {Sequence(100, 3), {1}});
  config_.data.path = {path("a"), path("d")};
  config_.data.split = "50,50,0";
  const TrainingData data = open_training_data(config_);
  EXPECT_EQ(data.parts.size(), 3u);
  ASSERT_EQ(data.notes.size(), 1u);
  EXPECT_NE(data.notes[0].find("1 tokens are left for validation"), std::string::npos);
}

TEST_F(BlendedDataTest, AFileOfABlendIsMissing) {
  config_.data.path = {"0.3", path("a"), "0.7", path("none")};
  expect_error(ErrorKind::Data, path("none"), [&] { open_training_data(config_); });
}

// 20 iterations of 4 samples, 1 epoch and a bit of a and more than two of b.
TEST_F(BlendedDataTest, MegatronsOrder) {
  config_.data.order = SampleOrder::Megatron;
  config_.train.iterations = 20;
  config_.train.samples = 0;
  config_.eval.interval = 10;
  config_.eval.iterations = 2;
  config_.data.path = {path("a")};
  const TrainingData one = open_training_data(config_);
  const auto file = std::make_shared<TokenFile>(path("a"));
  const auto seed = static_cast<uint32_t>(config_.train.seed);
  const MegatronDataset by_hand(
      file, {.index = {.range = {0, 36}, .sequence = 7, .wanted = 80, .seed = seed}, .vocab = 29});
  for (int64_t i = 0; i < 80; ++i) EXPECT_EQ(tokens_of(*one.train, i), tokens_of(by_hand, i));

  config_.data.path = {"0.3", path("a"), "0.7", path("b")};
  const TrainingData two = open_training_data(config_);
  const MegatronBlendIndex order = build_megatron_blend(std::vector{0.3, 0.7}, 80);
  const MegatronDataset first(
      file, {.index = {.range = {0, 36}, .sequence = 7, .wanted = 25, .seed = seed}, .vocab = 29});
  for (int64_t i = 0; i < 80; ++i) {
    const auto place = static_cast<size_t>(i);
    EXPECT_EQ(std::get<0>(place_of(*two.train, i)), path(order.dataset[place] == 0 ? "a" : "b"));
    if (order.dataset[place] == 0) {
      EXPECT_EQ(tokens_of(*two.train, i), tokens_of(first, order.sample[place]));
    }
  }
  // Whoever reads ahead finds something.
  EXPECT_EQ(tokens_of(*two.train, 80), tokens_of(*two.train, 0));
}

TEST_F(BlendedDataTest, ValidationWantsWhatTheWholeRunTakes) {
  config_.data.order = SampleOrder::Megatron;
  config_.data.split = "50,50,0";
  config_.data.path = {path("a")};
  config_.train.iterations = 20;
  config_.eval.interval = 10;
  config_.eval.iterations = 7;
  const TrainingData data = open_training_data(config_);
  EXPECT_TRUE(data.valid.goes_on);
  EXPECT_GE(data.valid.count, (20 / 10 + 1) * 7 * 4);  // more than an epoch of 25
}

TEST_F(BlendedDataTest, CyclicOrderIsAPermutationOfMegatronsSamples) {
  config_.data.order = SampleOrder::Megatron;
  config_.data.path = {path("a")};
  config_.train.iterations = 5;
  const TrainingData single = open_training_data(config_);
  config_.data.sampler = SamplerKind::Cyclic;
  const TrainingData cyclic = open_training_data(config_);
  const CyclicOrder order({.total = 51, .micro_batch = 2}, true);
  for (int64_t i = 0; i < 120; ++i)
    EXPECT_EQ(tokens_of(*cyclic.train, i), tokens_of(*single.train, order.at(i)));
}

TEST_F(BlendedDataTest, ReadInPiecesIsTheSame) {
  config_.data.path = {"0.5", path("a"), "0.5", path("b")};
  const TrainingData mapped = open_training_data(config_);
  config_.data.mmap = false;
  const TrainingData pieces = open_training_data(config_);
  for (int64_t i = 0; i < 100; ++i)
    EXPECT_EQ(tokens_of(*mapped.train, i), tokens_of(*pieces.train, i));
}

TEST_F(BlendedDataTest, SequencesApart) {
  config_.data.path = {path("a")};
  config_.data.separate_sequences = true;
  const TrainingData data = open_training_data(config_);
  HostBatch batch;
  batch.resize(1, 7, true);
  for (int64_t i = 0; i < 51; ++i) {
    data.train->read(i, batch, 0);
    const SampleSource source = data.train->source(i);
    size_t at = 0;
    for (const SampleSource::Piece& piece : source.pieces) {
      for (int64_t k = 0; k < piece.tokens && at < 7; ++k, ++at) {
        EXPECT_EQ(batch.positions[at], k);
        EXPECT_EQ(batch.document_start[at], static_cast<int32_t>(at) - k);
      }
    }
  }
}

}  // namespace
}  // namespace bev
