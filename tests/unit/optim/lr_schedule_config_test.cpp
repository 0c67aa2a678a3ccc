// The numbers are Megatron-LM's, made by its scheduler for warm-up 8, decay 30, final decay 10.
#include "optim/lr_schedule_config.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

LrSchedule small_spec(LrDecay style, WsdDecay wsd_style = WsdDecay::Exponential) {
  return {.init_lr = 1e-4,
          .max_lr = 1e-3,
          .min_lr = 1e-5,
          .warmup = 8,
          .decay = 30,
          .style = style,
          .wsd_style = wsd_style,
          .wsd = 10};
}

constexpr std::array<int64_t, 9> kPositions{0, 3, 8, 9, 17, 24, 29, 30, 31};

void expect_rates(const LrSchedule& spec, const std::array<double, 9>& expected) {
  for (size_t i = 0; i < kPositions.size(); ++i) {
    EXPECT_NEAR(learning_rate(spec, kPositions[i]), expected[i], 1e-12 * expected[i])
        << "at " << kPositions[i];
  }
}

// Each fails when its formula or the inclusive end of the decay (x > decay is min_lr) is changed.
TEST(LearningRate, Linear) {
  expect_rates(small_spec(LrDecay::Linear),
               {1e-4, 4.375e-4, 1e-3, 9.55e-4, 5.95e-4, 2.8e-4, 5.5e-5, 1e-5, 1e-5});
}
TEST(LearningRate, Cosine) {
  expect_rates(small_spec(LrDecay::Cosine),
               {1e-4, 4.375e-4, 1e-3, 9.949616137310618e-4, 6.444576156365078e-4,
                1.8084393669708394e-4, 1.5038386268938322e-5, 1e-5, 1e-5});
}
TEST(LearningRate, InverseSquareRoot) {
  expect_rates(small_spec(LrDecay::InverseSquareRoot),
               {1e-4, 4.375e-4, 1e-3, 9.428090415820635e-4, 6.859943405700355e-4,
                5.773502691896259e-4, 5.252257314388903e-4, 5.163977794943223e-4, 1e-5});
}
TEST(LearningRate, WarmupStableDecay) {
  expect_rates(small_spec(LrDecay::Wsd, WsdDecay::Linear),
               {1e-4, 4.375e-4, 1e-3, 1e-3, 1e-3, 6.04e-4, 1.09e-4, 1e-5, 1e-5});
  expect_rates(
      small_spec(LrDecay::Wsd, WsdDecay::Cosine),
      {1e-4, 4.375e-4, 1e-3, 1e-3, 1e-3, 6.57963412215599e-4, 3.4227024433899005e-5, 1e-5, 1e-5});
  expect_rates(
      small_spec(LrDecay::Wsd, WsdDecay::Exponential),
      {1e-4, 4.375e-4, 1e-3, 1e-3, 1e-3, 5.20559400845294e-4, 8.10557279109302e-5, 1e-5, 1e-5});
  expect_rates(
      small_spec(LrDecay::Wsd, WsdDecay::MinusSqrt),
      {1e-4, 4.375e-4, 1e-3, 1e-3, 1e-3, 3.738690232866609e-4, 6.080353492999137e-5, 1e-5, 1e-5});
}
// Fails when the end of the decay is tested before the style: a constant rate never falls.
TEST(LearningRate, ConstantNeverFalls) {
  expect_rates(small_spec(LrDecay::Constant),
               {1e-4, 4.375e-4, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3});
  EXPECT_EQ(learning_rate(small_spec(LrDecay::Constant), int64_t{1} << 50), 1e-3);
}

// Fails when a warm-up of 0 divides by itself, or when init_lr is used without a warm-up.
TEST(LearningRate, WithoutWarmupTheFirstStepHasTheFullRate) {
  LrSchedule s = small_spec(LrDecay::Cosine);
  s.warmup = 0;
  EXPECT_EQ(learning_rate(s, 0), 1e-3);
  s.style = LrDecay::InverseSquareRoot;
  EXPECT_EQ(learning_rate(s, 0), 1e-3);
  EXPECT_NEAR(learning_rate(s, 4), 5e-4, 1e-18);
}

// Fails when the floor of the inverse square root is left out.
TEST(LearningRate, InverseSquareRootStopsAtTheMinimum) {
  LrSchedule s = small_spec(LrDecay::InverseSquareRoot);
  s.decay = 1'000'000;
  s.min_lr = 5e-4;
  EXPECT_EQ(learning_rate(s, 900'000), 5e-4);
}

// Fails when the warm-up is rounded to whole samples: Megatron's fraction of 0.0123 of 480
// is 5.904.
TEST(LearningRate, WarmupNeedNotBeWhole) {
  const LrSchedule s{
      .max_lr = 1e-3, .min_lr = 1e-5, .warmup = 5.904, .decay = 480, .style = LrDecay::Cosine};
  EXPECT_NEAR(learning_rate(s, 1), 1.6937669376693767e-4, 1e-19);
  EXPECT_NEAR(learning_rate(s, 40), 9.874194109594863e-4, 1e-18);
}

// Fails when the ramp is mirrored, or goes on beyond its length.
TEST(WeightDecay, Ramps) {
  LrSchedule s{.start_wd = 0.01, .end_wd = 0.1, .wd_ramp = DecayRamp::Linear, .wd_length = 25};
  EXPECT_NEAR(weight_decay(s, 0), 0.01, 1e-17);
  EXPECT_NEAR(weight_decay(s, 10), 0.046, 1e-16);
  EXPECT_NEAR(weight_decay(s, 25), 0.1, 1e-16);
  EXPECT_EQ(weight_decay(s, 26), 0.1);
  s.wd_ramp = DecayRamp::Cosine;
  EXPECT_NEAR(weight_decay(s, 10), 0.04109423525312737, 1e-16);
  s.wd_length = 40;
  EXPECT_NEAR(weight_decay(s, 26), 0.07542957248827961, 1e-16);
  s.wd_ramp = DecayRamp::Constant;
  EXPECT_EQ(weight_decay(s, 3), 0.1);
}

Config run_of(int64_t iterations, int64_t samples) {
  Config c;
  c.train.iterations = iterations;
  c.train.samples = samples;
  c.optim.lr = 1e-3;
  return c;
}

// Fails when iterations are not multiplied by the batch, or the fraction is taken of the run
// instead of the decay.
TEST(ScheduleFrom, IterationsAreCountedInSamples) {
  Config c = run_of(1280, 0);
  c.optim.decay_iterations = 1267;
  c.optim.warmup_fraction = 0.24;
  const LrSchedule s = lr_schedule_from(c, 4096, 1280);
  EXPECT_EQ(s.decay, 5189632);
  EXPECT_EQ(s.warmup, 1245511.68);
  EXPECT_EQ(s.wd_length, 5242880);
  EXPECT_EQ(s.start_wd, 0.01);
  EXPECT_EQ(s.end_wd, 0.01);
}

// Fails when a run in samples is rounded to whole batches.
TEST(ScheduleFrom, SamplesAreTakenAsTheyAre) {
  Config c = run_of(0, 1000003);
  c.optim.warmup_fraction = 0.003;
  c.optim.decay = LrDecay::Wsd;
  c.optim.wsd_samples = 100000;
  const LrSchedule s = lr_schedule_from(c, 64, 15625);
  EXPECT_EQ(s.decay, 1000003);
  EXPECT_EQ(s.warmup, 3000.009);
  EXPECT_EQ(s.wsd, 100000);
  EXPECT_EQ(s.wd_length, 1000003);
}

// Fails when -1 ("not given") is taken for a weight decay.
TEST(ScheduleFrom, WeightDecayRampHasItsOwnEnds) {
  Config c = run_of(100, 0);
  c.optim.weight_decay = 0.3;
  EXPECT_EQ(lr_schedule_from(c, 4, 100).start_wd, 0.3);
  c.optim.start_weight_decay = 0;
  c.optim.end_weight_decay = 0.1;
  c.optim.weight_decay_ramp = DecayRamp::Linear;
  const LrSchedule s = lr_schedule_from(c, 4, 100);
  EXPECT_EQ(s.start_wd, 0);
  EXPECT_EQ(s.end_wd, 0.1);
  EXPECT_EQ(s.wd_length, 400);
}

// Fails when one of the checks is removed.
TEST(ScheduleFrom, ContradictionsAreUsageErrors) {
  const auto refuses = [](const std::string& text, auto change) {
    Config c = run_of(100, 0);
    change(c);
    expect_error(ErrorKind::Usage, text, [&] { lr_schedule_from(c, 4, c.train.iterations); });
  };
  refuses("run length is unset", [](Config& c) { c.train.iterations = 0; });
  refuses("optim.warmup_samples is set", [](Config& c) { c.optim.warmup_samples = 5; });
  refuses("optim.decay_samples is set", [](Config& c) { c.optim.decay_samples = 5; });
  refuses("cannot be used together", [](Config& c) {
    c.optim.warmup_fraction = 0.1;
    c.optim.warmup_iterations = 5;
  });
  refuses("must be shorter than the decay", [](Config& c) { c.optim.warmup_iterations = 100; });
  refuses("above optim.lr", [](Config& c) { c.optim.min_lr = 1; });
  refuses("above optim.lr", [](Config& c) { c.optim.warmup_init = 1; });
  refuses("optim.wsd_iterations", [](Config& c) { c.optim.decay = LrDecay::Wsd; });
  refuses("exceed the largest sample count",
          [](Config& c) { c.train.iterations = int64_t{1} << 62; });
  refuses("ramp is constant", [](Config& c) { c.optim.end_weight_decay = 0.5; });
}

}  // namespace
}  // namespace bev
