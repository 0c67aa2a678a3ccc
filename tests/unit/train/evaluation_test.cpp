#include "train/evaluation.h"

#include <gtest/gtest.h>

#include "support/small_run.h"
#include "support/tiny_models.h"
#include "support/tolerance.h"

namespace bev {
namespace {

// The last group of samples is rarely full; what fills it must not count.
TEST(Evaluation, EqualsTheSumOfItsSamples) {
  Config config = test::tiny_gpt();
  config.model.hidden_dropout = config.model.attention_dropout = 0.5;  // not in an evaluation
  test::SmallRun run(config);
  const MockDataset samples(29, 3);
  Evaluation evaluation(run.assembly.executor, run.plan.batch, run.assembly.spec.batch);
  std::vector<double> losses;
  for (int64_t i = 0; i < 11; ++i) {
    const LossSum one = evaluation.run(samples, i, 1).front();
    EXPECT_EQ(one.count, 7);
    losses.push_back(one.sum);
  }
  for (int64_t first = 0; first < 3; ++first) {
    double expected = 0;
    for (int64_t count = 0; first + count <= 11; ++count) {
      const LossSum sum = evaluation.run(samples, first, count).front();
      EXPECT_EQ(sum.count, static_cast<double>(7 * count));
      EXPECT_NEAR(sum.sum, expected, expected * test::tolerance(DType::f64, 7 * 11));
      if (first + count < 11) expected += losses[static_cast<size_t>(first + count)];
    }
  }
}

TEST(Evaluation, DependsOnNoSizeOfBatches) {
  Config config = test::tiny_gpt();
  const MockDataset samples(29, 3);
  std::vector<double> losses;
  for (const auto& [micro, global] : {std::pair{1, 1}, {2, 4}, {3, 3}, {4, 12}}) {
    config.train.micro_batch = micro;
    config.train.global_batch = global;
    test::SmallRun run(config);
    Evaluation evaluation(run.assembly.executor, run.plan.batch, run.assembly.spec.batch);
    losses.push_back(evaluation.run(samples, 2, 9).front().sum);
    EXPECT_NEAR(losses.back(), losses.front(), losses.front() * test::tolerance(DType::f64, 63));
  }
}

// Fails when what fills the last batch of a bi-encoder has a weight, or is a copy of a sample with
// one, whose context would then be two classes.
TEST(Evaluation, OfABiencoderFillsUpWithTheFirstSamples) {
  Config config = test::tiny_biencoder();
  config.train.micro_batch = config.train.global_batch = 4;
  test::SmallRun run(config);
  const MockDataset samples(29, 3);
  Evaluation evaluation(run.assembly.executor, run.plan.batch, run.assembly.spec.batch);
  std::vector<HostBatch> batches(2);
  const int64_t order[] = {5, 6, 7, 8, 9, 10, 5, 6};
  for (size_t i = 0; i < 2; ++i) {
    batches[i].resize(4, run.assembly.spec.batch);
    for (size_t at = 0; at < 4; ++at)
      samples.read(order[4 * i + at], batches[i], static_cast<int64_t>(at));
  }
  batches[1].exclude(2);
  batches[1].exclude(3);
  const LossSums expected = run.assembly.executor.evaluate(batches);
  const LossSums got = evaluation.run(samples, 5, 6);
  for (const size_t loss : {0, 1, 2}) {
    EXPECT_EQ(got[loss].count, 6);
    EXPECT_NEAR(got[loss].sum, expected[loss].sum, 1e-12 * (1 + expected[loss].sum));
  }
}

// Steps of different numbers of micro-batches on one executor.
TEST(Executor, NumberOfMicroBatchesMayChange) {
  const Config config = test::tiny_gpt();
  test::SmallRun run(config);
  const MockDataset samples(29, 3);
  std::vector<HostBatch> batches(5);
  int64_t sample = 0;
  for (HostBatch& batch : batches) {
    batch.resize(2, 7, false);
    for (int64_t at = 0; at < 2; ++at) samples.read(sample++, batch, at);
  }
  std::vector<double> alone;
  for (const HostBatch& batch : batches)
    alone.push_back(run.assembly.executor.evaluate({&batch, 1}).front().sum);
  for (const size_t count : {2u, 5u, 1u, 3u, 2u}) {
    const LossSum sum = run.assembly.executor.evaluate(std::span(batches).first(count)).front();
    double expected = 0;
    for (size_t i = 0; i < count; ++i) expected += alone[i];
    EXPECT_NEAR(sum.sum, expected, expected * test::tolerance(DType::f64, 70)) << count;
    EXPECT_EQ(sum.count, static_cast<double>(14 * count));
  }
}

}  // namespace
}  // namespace bev
