// The loss of a step as the mean over tokens or over micro-batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/small_run.h"
#include "support/tiny_models.h"

namespace bev::test {
namespace {

using Gradients = std::vector<double>;

struct Step {
  LossSums sums{};
  Gradients gradients;
};

Step train(SmallRun& run, std::span<const HostBatch> batches) {
  TrainingState& state = run.assembly;
  Exec ex = state.executor.exec();
  state.grads.begin_step(ex);
  state.executor.train(batches);
  Step step;
  state.device.download(state.executor.loss_sums().data, step.sums.data(),
                        state.spec.losses.size() * sizeof(LossSum));
  for (const Param* param : state.params.all()) {
    const Gradients own = values_of(state.device, param->grad);
    step.gradients.insert(step.gradients.end(), own.begin(), own.end());
  }
  return step;
}

double largest_difference(const Gradients& a, const Gradients& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// Three micro-batches: masked tokens differ in number, and the last has no value at all.
std::vector<HostBatch> uneven_batches(SmallRun& run) {
  const std::span<const HostBatch> read = run.loader.next();
  std::vector<HostBatch> batches(read.begin(), read.end());
  batches.resize(2);
  batches.push_back(batches.front());
  std::fill(batches[1].weight.begin() + 1, batches[1].weight.end(), 0.0F);
  batches[1].weight[0] = 1;
  batches[1].label_weight[0] = 0;
  for (int64_t at = 0; at < batches[2].sequences; ++at) batches[2].exclude(at);
  return batches;
}

Config uneven_bert(LossAverage average) {
  Config config = tiny_bert();
  config.train.global_batch = 3 * config.train.micro_batch;
  config.loss.average = average;
  return config;
}

// Fails when micro-batches with few masked tokens weigh less than others, when one without values
// takes part in the mean, or when logged losses follow another rule than the gradient.
TEST(LossAverage, MicroBatchesCountEqually) {
  SmallRun by_token(uneven_bert(LossAverage::Token));
  SmallRun by_micro_batch(uneven_bert(LossAverage::MicroBatch));
  const std::vector<HostBatch> batches = uneven_batches(by_token);
  ASSERT_GT(batches[0].valid_tokens(), 1);
  const std::vector<HostBatch> empty{batches[2], batches[2]};
  std::vector<Step> alone;
  for (size_t i = 0; i < 2; ++i) {
    // The other two add neither values nor gradients.
    const std::vector<HostBatch> step{batches[i], empty[0], empty[1]};
    alone.push_back(train(by_token, step));
  }
  Gradients expected = alone[0].gradients;
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = (expected[i] + alone[1].gradients[i]) / 2;

  const Step step = train(by_micro_batch, batches);
  EXPECT_LT(largest_difference(step.gradients, expected), 1e-14);
  const LossSums evaluated = by_micro_batch.assembly.executor.evaluate(batches);
  for (const size_t loss : {size_t{0}, size_t{1}}) {
    const double mean = (alone[0].sums[loss].mean() + alone[1].sums[loss].mean()) / 2;
    EXPECT_NEAR(step.sums[loss].mean(), mean, 1e-14);
    EXPECT_NEAR(step.sums[loss].count, 2, 1e-14);
    EXPECT_NEAR(evaluated[loss].mean(), mean, 1e-14);
  }
  // The means over tokens and over micro-batches are two numbers here.
  const Step tokens = train(by_token, batches);
  EXPECT_GT(largest_difference(tokens.gradients, expected), 1e-3);
}

// Fails when the two rules differ although all micro-batches have the same number of tokens.
TEST(LossAverage, EqualMicroBatchesMakeNoDifference) {
  Config config = tiny_gpt();
  SmallRun by_token(config);
  config.loss.average = LossAverage::MicroBatch;
  SmallRun by_micro_batch(config);
  const std::span<const HostBatch> read = by_token.loader.next();
  const std::vector<HostBatch> batches(read.begin(), read.end());
  ASSERT_GT(batches.size(), 1U);
  const Step a = train(by_token, batches), b = train(by_micro_batch, batches);
  EXPECT_LT(largest_difference(a.gradients, b.gradients), 1e-15);
  EXPECT_NEAR(a.sums[0].mean(), b.sums[0].mean(), 1e-14);
}

}  // namespace
}  // namespace bev::test
