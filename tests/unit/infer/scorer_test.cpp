#include "infer/scorer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "comm/thread_communicator.h"
#include "ops/make_device.h"
#include "support/expect_error.h"
#include "support/tolerance.h"
#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using test::expect_error;
using Ids = std::vector<int32_t>;
using Scores = std::vector<std::vector<TokenScore>>;

Ids text_of(int64_t tokens) {
  Ids ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>((i * i + 3 * i) % 29));
  return ids;
}

// Of different lengths, scored from different places on.
std::vector<ScoringItem> some_items() {
  std::vector<ScoringItem> items;
  for (int64_t i = 0; i < 11; ++i) {
    const int64_t size = 2 + i * 5 % 7;
    items.push_back({.ids = text_of(i + size), .first = 1 + i % (size - 1)});
    items.back().ids.erase(items.back().ids.begin(), items.back().ids.begin() + i);
  }
  return items;
}

ScoringItems list_of(const std::vector<ScoringItem>& items) {
  return {.count = static_cast<int64_t>(items.size()),
          .read = [&items](int64_t i) { return items[static_cast<size_t>(i)]; }};
}

Scores scored(LoadedModel& model, const std::vector<ScoringItem>& items) {
  Scorer scorer(model);
  Scores all;
  int64_t heard = 0;
  scorer.score(
      list_of(items),
      [&](int64_t index, std::span<const TokenScore> scores) {
        EXPECT_EQ(index, static_cast<int64_t>(all.size()));
        all.emplace_back(scores.begin(), scores.end());
      },
      [&](int64_t done) {
        EXPECT_GT(done, heard);
        heard = done;
      });
  EXPECT_EQ(heard, static_cast<int64_t>(items.size()));
  return all;
}

Scores scored_by_one(const test::StoredModel& stored, const std::vector<ScoringItem>& items,
                     int64_t batch) {
  LoadedModel model = stored.load(batch, 8);
  return scored(model, items);
}

// On every rank; all of them must say the same.
Scores scored_by_ranks(const ModelFolder& folder, const std::vector<ScoringItem>& items,
                       int64_t tensor, int64_t pipeline, int64_t batch) {
  InferenceSetup use{
      .device = {.kind = DeviceKind::Reference, .threads = 1}, .sequences = batch, .length = 8};
  use.parallel.ranks = tensor * pipeline;
  use.parallel.tensor = tensor;
  use.parallel.pipeline = pipeline;
  std::mutex mutex;
  std::vector<Scores> found;
  run_ranks(static_cast<int>(tensor * pipeline), std::chrono::seconds(60),
            [&](Communicator& world) {
              const auto device = make_device(use.device);
              LoadedModel model(folder, use, *device, world);
              Scores scores = scored(model, items);
              const std::lock_guard lock(mutex);
              found.push_back(std::move(scores));
            });
  for (const Scores& other : found) {
    for (size_t i = 0; i < other.size(); ++i)
      for (size_t t = 0; t < other[i].size(); ++t) {
        EXPECT_EQ(other[i][t].loss, found.front()[i][t].loss);
        EXPECT_EQ(other[i][t].is_likeliest, found.front()[i][t].is_likeliest);
      }
  }
  return found.front();
}

void expect_same(const Scores& got, const Scores& expected, double relative) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), expected[i].size()) << i;
    for (size_t t = 0; t < got[i].size(); ++t) {
      EXPECT_NEAR(got[i][t].loss, expected[i][t].loss, relative * expected[i][t].loss)
          << i << " " << t;
      EXPECT_EQ(got[i][t].is_likeliest, expected[i][t].is_likeliest) << i << " " << t;
    }
  }
}

// By the softmax of the logits, as a textbook has it.
Scores by_logits(LoadedModel& model, const std::vector<ScoringItem>& items) {
  const auto vocab = static_cast<size_t>(model.vocab());
  Scores all;
  for (const ScoringItem& item : items) {
    const std::vector<double> logits =
        test::all_logits(model, Ids(item.ids.begin(), item.ids.end() - 1));
    all.emplace_back();
    for (auto i = static_cast<size_t>(item.first); i < item.ids.size(); ++i) {
      const std::span<const double> row(logits.data() + (i - 1) * vocab, vocab);
      double sum = 0;
      for (const double logit : row) sum += std::exp(logit);
      const double own = row[static_cast<size_t>(item.ids[i])];
      all.back().push_back({.loss = std::log(sum) - own,
                            .is_likeliest = own == *std::max_element(row.begin(), row.end())});
    }
  }
  return all;
}

TEST(Scorer, IsTheSoftmaxOfTheLogits) {
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama()}) {
    const test::StoredModel stored(config);
    LoadedModel model = stored.load(3, 8);
    std::vector<ScoringItem> items = some_items();
    // One whose last id is the likeliest, so that there is a hit.
    const std::vector<double> logits = test::all_logits(model, {3, 5});
    const auto behind = logits.end() - model.vocab();
    items.push_back(
        {.ids = {3, 5, static_cast<int32_t>(std::max_element(behind, logits.end()) - behind)},
         .first = 2});
    const Scores scores = scored(model, items);
    expect_same(scores, by_logits(model, items), test::tolerance(DType::f64, 29, 10));
    EXPECT_TRUE(scores.back().front().is_likeliest);
  }
}

// Neither what is computed beside a sequence nor how the model is divided changes a number, though
// 29 ids do not divide over two ranks.
TEST(Scorer, BatchesAndRanksChangeNothing) {
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama()}) {
    const test::StoredModel stored(config);
    const std::vector<ScoringItem> items = some_items();
    const Scores expected = scored_by_one(stored, items, 1);
    for (const int64_t batch : {3, 8}) {
      SCOPED_TRACE(batch);
      expect_same(scored_by_one(stored, items, batch), expected, 1e-12);
    }
    for (const auto& [tensor, pipeline] : {std::pair{2, 1}, {1, 2}, {2, 2}}) {
      for (const int64_t batch : {1, 3, 8}) {
        SCOPED_TRACE(std::to_string(tensor) + " " + std::to_string(pipeline) + " " +
                     std::to_string(batch));
        expect_same(scored_by_ranks(stored.folder(), items, tensor, pipeline, batch), expected,
                    1e-12);
      }
    }
  }
}

// More batches than are on their way at a time, and more scores than are exchanged at a time.
TEST(Scorer, ManyItemsThroughAPipeline) {
  const test::StoredModel stored;
  std::vector<ScoringItem> items;
  for (int round = 0; round < 100; ++round)
    for (const ScoringItem& item : some_items()) items.push_back(item);
  expect_same(scored_by_ranks(stored.folder(), items, 1, 2, 64), scored_by_one(stored, items, 64),
              1e-12);
}

TEST(Scorer, TooSmallAVocabulary) {
  Config config = test::tiny_llama();
  config.model.vocab = 5;
  config.model.heads = config.model.kv_heads = 4;
  const test::StoredModel stored(config);
  expect_error(ErrorKind::Usage, "5 ids leaves none for the last of 4 tensor ranks",
               [&] { scored_by_ranks(stored.folder(), {{.ids = {1, 2, 3}}}, 4, 1, 1); });
}

TEST(Scorer, RefusesItemsThatDoNotFit) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 8);
  expect_error(ErrorKind::Internal, "10 ids", [&] { scored(model, {{.ids = text_of(10)}}); });
  expect_error(ErrorKind::Internal, "scored from 0",
               [&] { scored(model, {{.ids = text_of(4), .first = 0}}); });
}

TEST(OrderedItems, LongestFirstAndNumbered) {
  const std::vector<ScoringItem> items = some_items();
  const OrderedItems ordered = ordered_by_length(items);
  ASSERT_EQ(ordered.items.count, 11);
  for (int64_t i = 0; i < ordered.items.count; ++i) {
    const auto number = static_cast<size_t>(ordered.numbers[static_cast<size_t>(i)]);
    EXPECT_EQ(ordered.items.read(i).ids, items[number].ids);
    if (i > 0) {
      EXPECT_LE(ordered.items.read(i).ids.size(), ordered.items.read(i - 1).ids.size());
    }
  }
}

// Window by window, with the context each has.
TEST(Scorer, Windows) {
  const test::StoredModel stored;
  const Ids ids = text_of(30);
  LoadedModel model = stored.load(4, 8);
  for (const int64_t overlap : {0, 3, 7}) {
    const ScoringWindows windows(stream_of(ids), 8, overlap, 28);
    std::vector<ScoringItem> items;
    for (int64_t w = 0; w < windows.windows(); ++w) items.push_back(windows.item(w));
    expect_same(scored(model, items), by_logits(model, items), test::tolerance(DType::f64, 29, 30));
  }
}

}  // namespace
}  // namespace bev
