#include "data/token_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "unit/data/token_files.h"

namespace bev {
namespace {

using test::expect_error;
using test::Sequence;

class TokenDatasetTest : public ::testing::Test {
 protected:
  std::shared_ptr<const TokenFile> file_with(const std::vector<Sequence>& sequences) {
    test::write_tokens(dir_ / "a", sequences);
    return std::make_shared<TokenFile>(dir_ / "a");
  }

  // A file of one sequence 0, 1, 2, ...
  std::shared_ptr<const TokenFile> counting(int32_t tokens) {
    Sequence all(static_cast<size_t>(tokens));
    std::iota(all.begin(), all.end(), 0);
    return file_with({all});
  }

  test::TemporaryDirectory dir_;
};

HostBatch batch_of(const Dataset& samples, const std::vector<int64_t>& indices, int64_t length,
                   bool packed = false) {
  HostBatch batch;
  batch.resize(static_cast<int64_t>(indices.size()), length, packed);
  for (size_t at = 0; at < indices.size(); ++at)
    samples.read(indices[at], batch, static_cast<int64_t>(at));
  return batch;
}

TEST_F(TokenDatasetTest, WindowsShareOneToken) {
  // 3 windows of 4 take 13 tokens; the 14th to 16th are too few for another.
  const TokenDataset samples(counting(16), {0, 1}, {.sequence = 4, .vocab = 16, .shuffled = false});
  EXPECT_EQ(samples.windows(), 3);
  EXPECT_EQ(samples.tokens(), 16);
  const HostBatch batch = batch_of(samples, {0, 1, 2, 3}, 4);
  EXPECT_EQ(batch.tokens, (Sequence{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(batch.targets, (Sequence{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4}));
  EXPECT_EQ(batch.positions, (Sequence{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(batch.weight, std::vector<float>(16, 1.0f));
  std::vector<int64_t> rows(16);
  std::iota(rows.begin(), rows.end(), 0);
  EXPECT_EQ(batch.rows, rows);
}

TEST_F(TokenDatasetTest, ATokenMoreMakesAWindowMore) {
  for (const auto& [tokens, windows] : {std::pair{5, 1}, {8, 1}, {9, 2}, {12, 2}, {13, 3}}) {
    const TokenDataset samples(counting(tokens), {0, 1}, {.sequence = 4, .vocab = 16});
    EXPECT_EQ(samples.windows(), windows) << tokens;
  }
  for (const int32_t tokens : {0, 1, 4}) {
    const auto file = counting(tokens);
    expect_error(ErrorKind::Data, "fewer than one sample of 4 tokens",
                 [&] { TokenDataset(file, {0, 1}, {.sequence = 4, .vocab = 16}); });
  }
}

TEST_F(TokenDatasetTest, EachWindowOncePerEpoch) {
  const TokenDataset samples(counting(101), {0, 1}, {.sequence = 4, .vocab = 128, .seed = 3});
  ASSERT_EQ(samples.windows(), 25);
  std::vector<std::vector<int32_t>> epochs;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<int32_t> begins;
    for (int64_t i = 0; i < 25; ++i)
      begins.push_back(batch_of(samples, {epoch * 25 + i}, 4).tokens.front());
    EXPECT_EQ(std::set<int32_t>(begins.begin(), begins.end()).size(), 25u);
    for (const int32_t begin : begins) EXPECT_EQ(begin % 4, 0);
    for (const auto& other : epochs) EXPECT_NE(begins, other);
    epochs.push_back(begins);
  }
}

TEST_F(TokenDatasetTest, StaysInItsSequences) {
  const auto file = file_with({{90, 91}, {1, 2, 3}, {}, {4, 5, 6}, {92}});
  const TokenDataset samples(file, {1, 4}, {.sequence = 2, .vocab = 100, .shuffled = false});
  EXPECT_EQ(samples.tokens(), 6);
  EXPECT_EQ(samples.windows(), 2);
  const HostBatch batch = batch_of(samples, {0, 1}, 2);
  EXPECT_EQ(batch.tokens, (Sequence{1, 2, 3, 4}));
  EXPECT_EQ(batch.targets, (Sequence{2, 3, 4, 5}));
  EXPECT_EQ(samples.describe(1),
            "sample 1: 2 tokens of " + (dir_ / "a").string() + " from token 2 of sequence 1 on");
}

TEST_F(TokenDatasetTest, BadIdsAreFoundInTargetsToo) {
  const TokenDataset samples(counting(5), {0, 1}, {.sequence = 4, .vocab = 4});
  expect_error(ErrorKind::Data, "token 4 of sequence 0 is 4", [&] { batch_of(samples, {0}, 4); });
}

// By hand: 9 ends a document; it belongs to the document it ends, what follows starts anew.
TEST_F(TokenDatasetTest, EodRules) {
  const auto file = file_with({{1, 9, 2, 3, 9, 9, 4, 5, 9}});
  const auto batch_with = [&](bool mask, bool positions, bool attention) {
    const TokenDataset samples(file, {0, 1},
                               {.sequence = 8,
                                .vocab = 10,
                                .shuffled = false,
                                .ends = {.eod = 9,
                                         .mask_eod = mask,
                                         .reset_positions = positions,
                                         .reset_attention = attention}});
    return batch_of(samples, {0}, 8, attention);
  };
  const Sequence plain{0, 1, 2, 3, 4, 5, 6, 7}, anew{0, 1, 0, 1, 2, 0, 0, 1};
  const Sequence visible{0, 0, 2, 2, 2, 5, 6, 6};
  const std::vector<float> ones(8, 1.0f), masked{1, 0, 1, 1, 0, 0, 1, 1};
  for (int flags = 0; flags < 8; ++flags) {
    const bool mask = (flags & 1) != 0, positions = (flags & 2) != 0, attention = (flags & 4) != 0;
    const HostBatch batch = batch_with(mask, positions, attention);
    EXPECT_EQ(batch.weight, mask ? masked : ones) << flags;
    EXPECT_EQ(batch.positions, positions ? anew : plain) << flags;
    EXPECT_EQ(batch.document_start, attention ? visible : Sequence{}) << flags;
    EXPECT_EQ(batch.targets.back(), 9);  // counts in the loss: it is predicted like any other
  }
}

// A sample of Megatron-LM's own with all three flags.
TEST_F(TokenDatasetTest, DocumentEndsAsInMegatron) {
  const auto file = file_with(
      {{5642,  286, 10470, 837, 407, 284, 262, 2426, 764, 366, 220, 198, 220, 198, 50256, 796, 796,
        25353, 796, 796,   220, 198, 220, 198, 220,  198, 796, 796, 796, 350, 385, 272,   2448}});
  const TokenDataset samples(
      file, {0, 1},
      {.sequence = 32,
       .vocab = 50257,
       .ends = {.eod = 50256, .mask_eod = true, .reset_positions = true, .reset_attention = true}});
  const HostBatch batch = batch_of(samples, {0}, 32, true);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(batch.weight[i], i == 14 ? 0.0f : 1.0f) << i;
    EXPECT_EQ(batch.positions[i], static_cast<int32_t>(i < 15 ? i : i - 15)) << i;
    EXPECT_EQ(batch.document_start[i], i < 15 ? 0 : 15) << i;
  }
}

// What an earlier sample left in the batch does not stay.
TEST_F(TokenDatasetTest, BatchesAreFilledAnew) {
  const auto file = file_with({{1, 9, 2, 3, 4}});
  const TokenDataset samples(
      file, {0, 1},
      {.sequence = 2,
       .vocab = 10,
       .shuffled = false,
       .ends = {.eod = 9, .mask_eod = true, .reset_positions = true, .reset_attention = true}});
  HostBatch batch = batch_of(samples, {0}, 2, true);
  samples.read(1, batch, 0);
  const HostBatch fresh = batch_of(samples, {1}, 2, true);
  EXPECT_EQ(batch.tokens, fresh.tokens);
  EXPECT_EQ(batch.weight, fresh.weight);
  EXPECT_EQ(batch.positions, fresh.positions);
  EXPECT_EQ(batch.document_start, fresh.document_start);
}

}  // namespace
}  // namespace bev
