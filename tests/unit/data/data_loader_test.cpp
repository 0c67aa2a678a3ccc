#include "data/data_loader.h"

#include <gtest/gtest.h>

#include <atomic>

#include "data/mock_dataset.h"
#include "model/family/family.h"
#include "support/expect_error.h"
#include "support/tiny_models.h"

namespace bev {
namespace {

using test::expect_error;

bool equal(const HostBatch& a, const HostBatch& b) {
  return a.tokens == b.tokens && a.targets == b.targets && a.positions == b.positions &&
         a.weight == b.weight && a.rows == b.rows && a.document_start == b.document_start;
}

TEST(Loader, GivesWhatReadingDirectlyGives) {
  const auto samples = std::make_shared<MockDataset>(29, 7);
  DataLoader loader(
      samples, {.schedule = BatchSchedule(6), .micro_batch = 2, .fields = causal_batch(5, false)});
  int64_t position = 0;
  for (int step = 0; step < 20; ++step) {
    const std::span<const HostBatch> batches = loader.next();
    ASSERT_EQ(batches.size(), 3u);
    for (const HostBatch& batch : batches) {
      HostBatch direct;
      direct.resize(2, 5, false);
      samples->read(position++, direct, 0);
      samples->read(position++, direct, 1);
      EXPECT_TRUE(equal(batch, direct)) << step;
    }
    EXPECT_EQ(loader.place().position, position);
  }
}

TEST(Loader, StartsAnywhere) {
  const auto samples = std::make_shared<MockDataset>(29, 7);
  const DataLoader::Shape shape{
      .schedule = BatchSchedule(4), .micro_batch = 4, .fields = causal_batch(5, false)};
  DataLoader all(samples, shape);
  all.next();
  all.next();
  DataLoader later(samples, shape, {.position = 8, .consumed = 8});
  EXPECT_EQ(later.place().position, 8);
  EXPECT_TRUE(equal(all.next()[0], later.next()[0]));
}

// Fails when a batch takes a sample that is left out, takes fewer samples, or counts what it left
// out as consumed.
TEST(Loader, LeavesSamplesOut) {
  const auto samples = std::make_shared<MockDataset>(29, 7);
  const SampleRanges skipped({{2, 5}, {8, 9}, {11, 30}});
  const std::vector<std::vector<int64_t>> expected{{0, 1, 5, 6}, {7, 9, 10, 30}, {31, 32, 33, 34}};
  for (const int64_t share : {0, 1}) {
    DataLoader loader(samples,
                      {.schedule = BatchSchedule(4),
                       .micro_batch = 1,
                       .fields = causal_batch(5, false),
                       .share = share,
                       .shares = 2},
                      {}, skipped);
    for (size_t step = 0; step < expected.size(); ++step) {
      const std::span<const HostBatch> batches = loader.next();
      ASSERT_EQ(batches.size(), 2u);
      for (size_t micro = 0; micro < 2; ++micro)
        EXPECT_EQ(batches[micro].rows.front() / 5,
                  expected[step][2 * micro + static_cast<size_t>(share)])
            << step;
      EXPECT_EQ(loader.place().position, expected[step].back() + 1);
      EXPECT_EQ(loader.place().consumed, 4 * static_cast<int64_t>(step + 1));
    }
  }
}

// Fails when the ramp follows the position in the data instead of what was consumed.
TEST(Loader, RampCountsWhatWasConsumed) {
  const BatchSchedule ramp(4, 4, 100, 16);
  DataLoader loader(std::make_shared<MockDataset>(29, 7),
                    {.schedule = ramp, .micro_batch = 2, .fields = causal_batch(3, false)},
                    {.position = 1000, .consumed = 0});
  EXPECT_EQ(loader.next().size(), 2u);
  EXPECT_EQ(loader.place().position, 1004);
}

TEST(Loader, FollowsTheRamp) {
  const auto samples = std::make_shared<MockDataset>(29, 7);
  const BatchSchedule ramp(4, 4, 100, 16);
  DataLoader loader(samples,
                    {.schedule = ramp, .micro_batch = 2, .fields = causal_batch(3, false)});
  int64_t position = 0;
  for (int step = 0; step < 20; ++step) {
    const std::span<const HostBatch> batches = loader.next();
    ASSERT_EQ(static_cast<int64_t>(batches.size()), ramp.at(position) / 2);
    for (const HostBatch& batch : batches) {
      EXPECT_EQ(batch.rows.front(), position * 3);
      position += 2;
    }
    EXPECT_EQ(loader.place().position, position);
  }
  EXPECT_GT(position, 150);
}

// Fails from one sample on, and counts how often it is asked.
class Failing final : public Dataset {
 public:
  explicit Failing(int64_t from) : from_(from) {}
  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    ++asked;
    if (index >= from_) throw Error(ErrorKind::Data, "sample " + std::to_string(index));
    for (int64_t i = 0; i < batch.length; ++i)
      batch.rows[static_cast<size_t>(at * batch.length + i)] = index;
  }
  std::string describe(int64_t) const override { return ""; }
  mutable std::atomic<int> asked{0};

 private:
  int64_t from_;
};

TEST(Loader, FailureArrivesWithItsStepAndStays) {
  const auto samples = std::make_shared<Failing>(5);
  DataLoader loader(
      samples, {.schedule = BatchSchedule(2), .micro_batch = 2, .fields = causal_batch(1, false)});
  loader.next();
  const std::span<const HostBatch> last = loader.next();
  EXPECT_EQ(loader.place().position, 4);
  for (int again = 0; again < 3; ++again) {
    expect_error(ErrorKind::Data, "sample 5", [&] { loader.next(); });
    EXPECT_EQ(loader.place().position, 4);
  }
  // What was handed out last is still whole.
  EXPECT_EQ(last[0].rows, (std::vector<int64_t>{2, 3}));
  EXPECT_LE(samples->asked, 6);
}

TEST(Loader, FailureAtOnce) {
  DataLoader loader(
      std::make_shared<Failing>(0),
      {.schedule = BatchSchedule(1), .micro_batch = 1, .fields = causal_batch(1, false)});
  expect_error(ErrorKind::Data, "sample 0", [&] { loader.next(); });
  EXPECT_EQ(loader.place().position, 0);
}

TEST(Loader, EndsWhetherOrNotAnybodyAsked) {
  for (int i = 0; i < 50; ++i) {
    DataLoader loader(
        std::make_shared<MockDataset>(29, 7),
        {.schedule = BatchSchedule(2), .micro_batch = 2, .fields = causal_batch(100, false)});
    for (int step = 0; step < i % 3; ++step) loader.next();
  }
}

TEST(Loader, ShapeOfAConfiguration) {
  Config config = test::tiny_gpt();
  config.data.reset_attention = true;
  const DataLoader::Shape shape = DataLoader::shape_of(config, model_spec(config).batch);
  EXPECT_EQ(shape.micro_batch, 2);
  EXPECT_EQ(shape.schedule.largest(), 4);
  HostBatch batch;
  batch.resize(1, shape.fields);
  EXPECT_EQ(batch.length, 7);
  EXPECT_FALSE(batch.document_start.empty());
  DataLoader loader(std::make_shared<MockDataset>(29, 7), shape);
  EXPECT_EQ(loader.next()[1].document_start, std::vector<int32_t>(14, 0));
}

}  // namespace
}  // namespace bev
