#include "data/megatron/megatron_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "unit/data/token_files.h"

namespace bev {
namespace {

using test::expect_error;
using test::Sequence;

class MegatronDatasetTest : public ::testing::Test {
 protected:
  std::shared_ptr<const TokenFile> file_with(const std::vector<Sequence>& sequences) {
    test::write_tokens(dir_ / "a", sequences);
    return std::make_shared<TokenFile>(dir_ / "a");
  }
  // Sequences of different length, some empty, with all tokens different.
  std::shared_ptr<const TokenFile> different() {
    std::vector<Sequence> sequences;
    int32_t next = 0;
    for (const size_t length : {5u, 0u, 12u, 1u, 7u, 30u, 0u, 3u, 9u, 2u, 16u}) {
      Sequence sequence(length);
      std::iota(sequence.begin(), sequence.end(), next);
      next += static_cast<int32_t>(length);
      sequences.push_back(sequence);
    }
    return file_with(sequences);
  }

  test::TemporaryDirectory dir_;
};

HostBatch sample(const Dataset& samples, int64_t index, int64_t length, bool packed = false) {
  HostBatch batch;
  batch.resize(1, length, packed);
  samples.read(index, batch, 0);
  return batch;
}

// The tokens of the shuffled documents, one after the other.
Sequence stream_of(const MegatronIndex& index, const TokenFile& file) {
  Sequence stream;
  for (const int32_t document : index.documents) {
    Sequence part(static_cast<size_t>(file.index().length(document)));
    file.read(file.stream_begin(document), part, INT32_MAX);
    stream.insert(stream.end(), part.begin(), part.end());
  }
  return stream;
}

// Sample j is the s + 1 tokens from token j s on: each token of the stream is once an input.
TEST_F(MegatronDatasetTest, SamplesCutTheStreamOfDocuments) {
  const auto file = different();  // 85 tokens
  for (const int64_t sequence : {1, 4, 7, 84}) {
    for (const int64_t wanted : {1, 20, 100}) {
      const MegatronDataset samples(
          file, {.index = {.range = {0, 11}, .sequence = sequence, .wanted = wanted, .seed = 3},
                 .vocab = 85});
      const MegatronIndex& index = samples.index();
      const Sequence stream = stream_of(index, *file);
      ASSERT_EQ(stream.size(), static_cast<size_t>(85 * index.epochs));
      EXPECT_EQ(samples.count(), (85 * index.epochs - 1) / sequence);
      EXPECT_GE(samples.count(), wanted);
      EXPECT_LT((85 * (index.epochs - 1) - 1) / sequence, wanted);
      std::map<int32_t, int64_t> uses;
      for (const int32_t document : index.documents) ++uses[document];
      EXPECT_EQ(uses.size(), 11u);
      for (const auto& [document, count] : uses) EXPECT_EQ(count, index.epochs) << document;
      std::set<int64_t> seen;
      for (int64_t i = 0; i < samples.count(); ++i) {
        const int64_t number = index.shuffle[static_cast<size_t>(i)];
        seen.insert(number);
        const HostBatch batch = sample(samples, i, sequence);
        const auto from = stream.begin() + number * sequence;
        EXPECT_EQ(batch.tokens, Sequence(from, from + sequence));
        EXPECT_EQ(batch.targets, Sequence(from + 1, from + sequence + 1));
      }
      EXPECT_EQ(seen.size(), static_cast<size_t>(samples.count()));
    }
  }
}

// 12 samples an epoch. A last epoch of which less than 80 % is wanted is shuffled apart.
TEST_F(MegatronDatasetTest, LastEpochApart) {
  const auto file = different();
  for (const auto& [wanted, apart] : {std::pair<int64_t, bool>{29, true}, {36, false}}) {
    const MegatronIndex index =
        build_megatron_index(*file, {.range = {0, 11}, .sequence = 7, .wanted = wanted, .seed = 3});
    ASSERT_EQ(index.epochs, 3);
    const std::set<int32_t> last(index.documents.end() - 11, index.documents.end());
    const int64_t before = (2 * 85 - 1) / 7;
    const auto largest = *std::max_element(index.shuffle.begin(), index.shuffle.begin() + before);
    EXPECT_EQ(last.size() == 11 && largest < before, apart) << wanted;
  }
}

TEST_F(MegatronDatasetTest, PartialSamplesArePadded) {
  const auto file = file_with({{1, 2, 3, 4, 5, 6}});
  MegatronSamplesSpec spec{
      .index = {.range = {0, 1}, .sequence = 4, .wanted = std::nullopt, .drop_partial = false},
      .vocab = 10};
  const MegatronDataset samples(file, spec);
  ASSERT_EQ(samples.count(), 2);
  const int64_t last = samples.index().shuffle[0] == 1 ? 0 : 1;
  const HostBatch padded = sample(samples, last, 4);
  EXPECT_EQ(padded.tokens, (Sequence{5, 6, 0, 0}));
  EXPECT_EQ(padded.targets, (Sequence{6, 0, 0, 0}));
  EXPECT_EQ(padded.weight, (std::vector<float>{1, 0, 0, 0}));
  // A padding that is an id of the vocabulary has no loss wherever it stands.
  spec.pad = 3;
  const HostBatch whole = sample(MegatronDataset(file, spec), 1 - last, 4);
  EXPECT_EQ(whole.tokens, (Sequence{1, 2, 0, 4}));
  EXPECT_EQ(whole.targets, (Sequence{2, 0, 4, 5}));
  EXPECT_EQ(whole.weight, (std::vector<float>{1, 0, 1, 1}));
  EXPECT_EQ(padding_in_use(3, 3), -1);
  EXPECT_EQ(padding_in_use(3, 4), 3);
}

TEST_F(MegatronDatasetTest, SequencesApart) {
  const auto file = different();
  const MegatronDataset samples(file, {.index = {.range = {0, 11}, .sequence = 20, .seed = 5},
                                       .vocab = 85,
                                       .separate_sequences = true});
  for (int64_t i = 0; i < samples.count(); ++i) {
    const HostBatch batch = sample(samples, i, 20, true);
    const std::vector<int64_t> lengths = samples.piece_lengths(i);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), 20);
    for (int32_t at = 0; at < 20; ++at) {
      const auto slot = static_cast<size_t>(at);
      EXPECT_EQ(batch.document_start[slot], at - batch.positions[slot]);
      if (at == 0) continue;
      // All tokens differ, so neighbours of one sequence follow each other.
      const bool same =
          file->sequence_at(batch.tokens[slot]) == file->sequence_at(batch.tokens[slot - 1]) &&
          batch.tokens[slot] == batch.tokens[slot - 1] + 1;
      EXPECT_EQ(batch.positions[slot], same ? batch.positions[slot - 1] + 1 : 0);
    }
  }
}

TEST_F(MegatronDatasetTest, SaysWhereASampleIs) {
  const auto file = file_with({{1, 2, 3}, {}, {4, 5, 6}});
  const MegatronDataset samples(file, {.index = {.range = {0, 3}, .sequence = 5}, .vocab = 10});
  const SampleSource source = samples.source(0);
  ASSERT_EQ(source.pieces.size(), 2u);
  EXPECT_EQ(source.pieces[0].tokens, 3);
  EXPECT_EQ(source.pieces[1].tokens, 3);
  EXPECT_EQ(source.pieces[0].offset, 0);
  EXPECT_NE(source.pieces[0].sequence, source.pieces[1].sequence);
  EXPECT_EQ(source.epoch, 0);
}

// Less text than one sample is read over and over, if samples are wanted.
TEST_F(MegatronDatasetTest, ShorterThanASample) {
  const auto file = file_with({{1, 2, 3}});
  const MegatronDataset samples(
      file, {.index = {.range = {0, 1}, .sequence = 7, .wanted = 2}, .vocab = 10});
  EXPECT_EQ(samples.index().epochs, 5);
  ASSERT_EQ(samples.count(), 2);
  const int64_t first = samples.index().shuffle[0] == 0 ? 0 : 1;
  EXPECT_EQ(sample(samples, first, 7).tokens, (Sequence{1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(build_megatron_index(*file, {.range = {0, 1}, .sequence = 7, .wanted = std::nullopt})
                .samples(),
            0);
}

TEST_F(MegatronDatasetTest, WhatCannotBeOrdered) {
  const auto file = file_with({{1, 2, 3}, {}});
  expect_error(ErrorKind::Data, "sequences 1 to 2 have no tokens",
               [&] { build_megatron_index(*file, {.range = {1, 2}, .sequence = 3}); });
  expect_error(ErrorKind::Data, "data.order arithmetic takes none", [&] {
    build_megatron_index(*file, {.range = {0, 1}, .sequence = 2, .wanted = int64_t{1} << 50});
  });
}

}  // namespace
}  // namespace bev
