// Every test names the fault that makes it fail.
#include "ops/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/harness.h"

namespace bev::test {
namespace {

constexpr double kFactor = 0.5;

ConstTensor control(Trial& run, double applied = 1) {
  const std::vector<double> values{kFactor, applied};
  return run.given({2}, values, Element::F64);
}

// Second moments are positive.
Tensor second_moment(Trial& run, int64_t n) {
  std::vector<double> values = run.read(run.input("v", {n}, Element::Sum));
  for (double& value : values) value *= value;
  return run.updated_given({n}, values, Element::Sum);
}

struct Adam {
  int64_t n;
  bool master = false;
  int64_t step = 3;
  double applied = 1;

  std::string name() const {
    return label("n={} master={} step={} applied={}", n, master, step, applied);
  }
  void operator()(Trial& run) const {
    ops::AdamW args;
    args.param = run.updated("param", {n});
    if (master) args.master = run.updated("master", {n}, Element::Sum);
    args.m = run.updated("m", {n}, Element::Sum);
    args.v = second_moment(run, n);
    args.grad = run.input("grad", {n}, Element::Sum);
    args.control = control(run, applied);
    args.lr = 0.1;
    args.beta1 = 0.9;
    args.beta2 = 0.95;
    args.eps = 1e-3;
    args.weight_decay = 0.1;
    args.step = step;
    run.compare("param", args.param, {.ops = 2});
    if (master) run.compare("master", args.master, {.ops = 2});
    run.compare("m", args.m);
    run.compare("v", args.v);
    ops::adamw(run.ex(), args);
  }
};

struct Momentum {
  int64_t n;
  bool master = false;
  int64_t step = 3;
  double applied = 1;

  std::string name() const {
    return label("n={} master={} step={} applied={}", n, master, step, applied);
  }
  void operator()(Trial& run) const {
    ops::Sgd args;
    args.param = run.updated("param", {n});
    if (master) args.master = run.updated("master", {n}, Element::Sum);
    args.buffer = run.updated("buffer", {n}, Element::Sum);
    args.grad = run.input("grad", {n}, Element::Sum);
    args.control = control(run, applied);
    args.lr = 0.1;
    args.momentum = 0.8;
    args.weight_decay = 0.05;
    args.step = step;
    run.compare("param", args.param, {.ops = 2});
    if (master) run.compare("master", args.master, {.ops = 2});
    run.compare("buffer", args.buffer);
    ops::sgd(run.ex(), args);
  }
};

const std::vector<int64_t> kLengths{0,  1,  7,  8,  9,  15,
                                    17, 31, 33, 64, 65, kSharedRows* kSharedWidth};

// Fails when bias correction is formed in f32 (beta2^step near 1), the update is computed on the
// rounded param instead of the master, or an update that is not applied touches anything.
TEST(Update, CpuAdamWAgrees) {
  for (const int64_t n : kLengths) {
    for (const bool master : {false, true}) {
      for (const int64_t step : {1, 3, 100000}) {
        const Adam c{n, master, step};
        expect_cpu_agrees(c.name(), c);
      }
      const Adam skipped{n, master, 3, 0};
      expect_cpu_agrees(skipped.name(), skipped);
    }
  }
}

// Fails when the first step reads the buffer, or decay is applied after momentum.
TEST(Update, CpuSgdAgrees) {
  for (const int64_t n : kLengths) {
    for (const bool master : {false, true}) {
      for (const int64_t step : {1, 3}) {
        const Momentum c{n, master, step};
        expect_cpu_agrees(c.name(), c);
      }
      const Momentum skipped{n, master, 3, 0};
      expect_cpu_agrees(skipped.name(), skipped);
    }
  }
}

// Five steps of one weight with the moments as explicit sums over the past gradients (Kingma and Ba
// 2015; Loshchilov and Hutter 2019), which shares no line with the op.
// Fails when the correction uses the wrong step, or decay is scaled by the moments.
TEST(Update, AdamWFollowsItsDefinition) {
  for (const bool master : {false, true}) {
    Trial run(TrialSpec{});
    const double lr = 0.01, b1 = 0.9, b2 = 0.99, eps = 1e-8, decay = 0.1;
    const std::vector<double> start{0.7}, zero{0};
    const std::vector<double> grads{0.3, -0.2, 0.5, 0.1, -0.4};
    const Tensor param = run.updated_given({1}, start), m = run.updated_given({1}, zero);
    const Tensor v = run.updated_given({1}, zero), shadow = run.updated_given({1}, start);
    double expected = start[0];
    for (int64_t step = 1; step <= 5; ++step) {
      const std::vector<double> grad{grads[static_cast<size_t>(step - 1)]};
      ops::adamw(run.ex(), {.param = param,
                            .master = master ? shadow : Tensor{},
                            .m = m,
                            .v = v,
                            .grad = run.given({1}, grad),
                            .control = control(run),
                            .lr = lr,
                            .beta1 = b1,
                            .beta2 = b2,
                            .eps = eps,
                            .weight_decay = decay,
                            .step = step});
      double mean = 0, square = 0, mean_weights = 0, square_weights = 0;
      for (int64_t past = 1; past <= step; ++past) {
        const double g = kFactor * grads[static_cast<size_t>(past - 1)];
        const auto age = static_cast<double>(step - past);
        mean += std::pow(b1, age) * g;
        mean_weights += std::pow(b1, age);
        square += std::pow(b2, age) * g * g;
        square_weights += std::pow(b2, age);
      }
      const double direction = mean / mean_weights / (std::sqrt(square / square_weights) + eps);
      expected = expected * (1 - lr * decay) - lr * direction;
      EXPECT_NEAR(run.read(param)[0], expected, 1e-14) << "step " << step;
      if (master) {
        EXPECT_EQ(run.read(param), run.read(shadow));
      }
    }
  }
}

// The velocity of step t is the sum of momentum^age * d. Fails when momentum damps the gradient.
TEST(Update, SgdFollowsItsDefinition) {
  for (const bool master : {false, true}) {
    Trial run(TrialSpec{});
    const double lr = 0.1, momentum = 0.9, decay = 0.01;
    const std::vector<double> start{0.7}, stale{123};
    const std::vector<double> grads{0.3, -0.2, 0.5, 0.1};
    const Tensor param = run.updated_given({1}, start), shadow = run.updated_given({1}, start);
    const Tensor buffer = run.updated_given({1}, stale);
    double expected = start[0];
    std::vector<double> directions;
    for (int64_t step = 1; step <= 4; ++step) {
      const std::vector<double> grad{grads[static_cast<size_t>(step - 1)]};
      ops::sgd(run.ex(), {.param = param,
                          .master = master ? shadow : Tensor{},
                          .buffer = buffer,
                          .grad = run.given({1}, grad),
                          .control = control(run),
                          .lr = lr,
                          .momentum = momentum,
                          .weight_decay = decay,
                          .step = step});
      directions.push_back(kFactor * grad[0] + decay * expected);
      double velocity = 0;
      for (size_t past = 0; past < directions.size(); ++past) {
        velocity += std::pow(momentum, static_cast<double>(directions.size() - 1 - past)) *
                    directions[past];
      }
      expected -= lr * velocity;
      EXPECT_NEAR(run.read(param)[0], expected, 1e-14) << "step " << step;
      if (master) {
        EXPECT_EQ(run.read(param), run.read(shadow));
      }
    }
  }
}

struct Decision {
  double factor, applied;
};

Decision decide(DeviceKind kind, double norm_squared, double max_norm, double multiplier) {
  const DType dtype = kind == DeviceKind::Reference ? DType::f64 : DType::f32;
  Trial run({.kind = kind, .storage = dtype, .exact_in = dtype});
  const std::vector<double> norm{norm_squared};
  const Tensor out = run.blank({2}, Element::F64);
  ops::update_control(run.ex(), {.norm_squared = run.given({1}, norm, Element::F64),
                                 .max_norm = max_norm,
                                 .grad_multiplier = multiplier,
                                 .control = out});
  return {run.read(out)[0], run.read(out)[1]};
}

// Fails when a small norm is scaled up, the norm is compared before the multiplier, max_norm 0
// clips everything, or a norm that is not finite is applied.
void expect_clips(DeviceKind kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double clipped = 0.5 * 1.0 / (2.0 + 1e-6);
  EXPECT_NEAR(decide(kind, 16, 1, 0.5).factor, clipped, 1e-15);  // norm 4 * 0.5 above 1
  EXPECT_EQ(decide(kind, 16, 1, 0.5).applied, 1);
  EXPECT_EQ(decide(kind, 16, 3, 0.5).factor, 0.5);  // norm 2 below 3
  EXPECT_EQ(decide(kind, 16, 0, 0.5).factor, 0.5);  // no clipping
  EXPECT_EQ(decide(kind, 0, 1, 2).factor, 2);
  for (const double norm : {kInfinity, std::nan("")}) {
    for (const double max_norm : {0.0, 1.0}) {
      EXPECT_EQ(decide(kind, norm, max_norm, 1).applied, 0);
      EXPECT_TRUE(std::isfinite(decide(kind, norm, max_norm, 1).factor));
    }
  }
}

TEST(Update, ControlClips) { expect_clips(DeviceKind::Reference); }
TEST(Update, CpuControlClips) { expect_clips(DeviceKind::Cpu); }

}  // namespace
}  // namespace bev::test
