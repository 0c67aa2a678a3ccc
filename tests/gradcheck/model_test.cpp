// Whole models against finite differences of their loss, dropout on, in float64.
//
// Deliberate faults that were seen to fail here: the residual gradient not added in NormBackward,
// the dropout key of the backward pass changed, the tied head's gradient overwritten by the
// embedding's, rope not turned back, the QK norm's backward left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/small_run.h"
#include "support/tiny_models.h"
#include "support/two_state_models.h"

namespace bev::test {
namespace {

class ModelGradient : public ::testing::TestWithParam<TinyModel> {};

double loss_of(SmallRun& run, std::span<const HostBatch> batches) {
  Exec ex = run.assembly.executor.exec();
  run.assembly.grads.begin_step(ex);
  run.assembly.executor.train(batches);
  LossSums sums;
  const std::vector<LossSpec>& losses = run.assembly.spec.losses;
  run.device->download(run.assembly.executor.loss_sums().data, sums.data(),
                       losses.size() * sizeof(LossSum));
  return total_loss(losses, sums);
}

// Every parameter tensor contributes its largest gradients and a few entries spread over it.
std::vector<int64_t> entries_of(const std::vector<double>& grad) {
  std::vector<int64_t> chosen;
  const auto count = static_cast<int64_t>(grad.size());
  for (int64_t i = 0; i < 3; ++i) chosen.push_back(i * (count - 1) / 2);
  chosen.push_back(std::max_element(grad.begin(), grad.end()) - grad.begin());
  chosen.push_back(std::min_element(grad.begin(), grad.end()) - grad.begin());
  return chosen;
}

void expect_finite_differences(SmallRun& run) {
  const std::span<const HostBatch> batches = run.loader.next();
  loss_of(run, batches);
  std::vector<std::vector<double>> grads;
  for (Param* param : run.assembly.params.all()) grads.push_back(values_of(param->grad));

  constexpr double kStep = 1e-5;
  double worst = 0;
  for (size_t p = 0; p < grads.size(); ++p) {
    Param* param = run.assembly.params.all()[p];
    auto* values = reinterpret_cast<double*>(param->value.data);
    double scale = 1e-4;  // entries far below the tensor's largest are rounding in the difference
    for (const double g : grads[p]) scale = std::max(scale, std::abs(g));
    for (const int64_t i : entries_of(grads[p])) {
      const double old = values[i];
      values[i] = old + kStep;
      const double above = loss_of(run, batches);
      values[i] = old - kStep;
      const double below = loss_of(run, batches);
      values[i] = old;
      const double slope = (above - below) / (2 * kStep);
      const double error = std::abs(slope - grads[p][static_cast<size_t>(i)]) / scale;
      worst = std::max(worst, error);
      EXPECT_LE(error, 2e-6) << param->spec.name << "[" << i << "]: " << slope << " against "
                             << grads[p][static_cast<size_t>(i)];
    }
  }
  ::testing::Test::RecordProperty("worst_relative_error", std::to_string(worst));
}

TEST_P(ModelGradient, EqualsFiniteDifferences) {
  SmallRun run(GetParam().config);
  expect_finite_differences(run);
}

INSTANTIATE_TEST_SUITE_P(All, ModelGradient, ::testing::ValuesIn(tiny_models()),
                         [](const auto& model) { return model.param.name; });

// Fails when a reader of the encoder's output overwrites its gradient, or when a bias gradient
// lacks what a head between two blocks adds.
TEST(TwoStateGradient, EqualsFiniteDifferences) {
  Config config = tiny_gpt();
  config.model.layers = 6;
  for (const auto spec : {two_towers, encoder_decoder}) {
    SmallRun run(config, {.spec = spec});
    expect_finite_differences(run);
  }
}

}  // namespace
}  // namespace bev::test
