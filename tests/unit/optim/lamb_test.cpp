// LAMB and its variants against their definitions, written down a second time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/make_device.h"
#include "ops/update.h"
#include "optim/optimizer.h"
#include "pipeline/rank_model.h"
#include "support/small_run.h"
#include "support/tiny_models.h"

namespace bev::test {
namespace {

using Values = std::vector<double>;

constexpr double kClipFactor = 0.5;  // of the first clip

double norm_of(const Values& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

struct LambTensor {
  const char* name;
  Shape shape;
  Role role;
  double content;  // 0: starts at 0
};
// Two with weight decay; two start at 0; sizes that are no multiples of anything.
const std::vector<LambTensor>& lamb_tensors() {
  static const std::vector<LambTensor> all{{"table", {11, 5}, Role::TokenTable, 0.3},
                                           {"zero", {3, 7}, Role::Matrix, 0},
                                           {"norm", {13}, Role::Norm, 1},
                                           {"bias", {6}, Role::Bias, 0}};
  return all;
}

double drawn(size_t tensor, int64_t step, size_t i) {
  return std::sin(1.7 * static_cast<double>(i) + 3.1 * static_cast<double>(step) +
                  static_cast<double>(tensor));
}

// Parameters, gradients and an optimizer on one rank.
class LambRun {
 public:
  explicit LambRun(const OptimConfig& config)
      : device_(make_device(DeviceKind::Reference, 1)),
        params_(*device_, {}, 0, DType::f64),
        none_(*device_, 0, "none") {
    for (const LambTensor& t : lamb_tensors())
      params_.declare({.name = t.name, .shape = t.shape, .role = t.role});
    params_.allocate();
    grads_.emplace(params_);
    optimizer_.emplace(config, params_, *grads_, alone_.groups, 0);
    for (size_t t = 0; t < lamb_tensors().size(); ++t) {
      Values start(static_cast<size_t>(params_.all()[t]->value.shape.elements()));
      for (size_t i = 0; i < start.size(); ++i)
        start[i] = lamb_tensors()[t].content * (1 + 0.2 * drawn(t, 0, i));
      set(params_.all()[t]->value, start);
    }
  }

  size_t without_gradient = 99;  // index of a tensor

  // Step `number` from 1.
  void step(int64_t number, bool applied = true, double rate = 0.01, double decay = 0.1) {
    double squares = 0;
    for (size_t t = 0; t < lamb_tensors().size(); ++t) {
      Values g = gradient(t, number);
      if (t == without_gradient) std::fill(g.begin(), g.end(), 0.0);
      set(params_.all()[t]->grad, g);
      squares += norm_of(g) * norm_of(g);
    }
    Values decision(kUpdateDecisions, 0.0);
    decision[kFactor] = applied ? kClipFactor : 0;
    decision[kApplied] = applied ? 1 : 0;
    decision[kRate] = rate;
    decision[kWeightDecay] = decay;
    decision[kStepNumber] = static_cast<double>(number);
    decision[kNorm] = std::sqrt(squares);
    decision[kUsedScale] = 1;
    Exec ex{*device_, device_->compute_stream(), none_, none_, none_};
    optimizer_->step(ex, tensor_over(reinterpret_cast<std::byte*>(decision.data()), DType::f64,
                                     {kUpdateDecisions}));
  }

  static Values gradient(size_t tensor, int64_t step) {
    Values g(static_cast<size_t>(lamb_tensors()[tensor].shape.elements()));
    for (size_t i = 0; i < g.size(); ++i) g[i] = drawn(tensor, step, i);
    return g;
  }
  Values value(size_t tensor) const { return values_of(params_.all()[tensor]->value); }
  // Parameters and states.
  std::vector<Values> everything() const {
    std::vector<Values> all;
    for (size_t t = 0; t < lamb_tensors().size(); ++t) all.push_back(value(t));
    for (const OptimizerState& state : optimizer_->states()) all.push_back(values_of(state.flat));
    return all;
  }
  std::vector<OptimizerState> states() const { return optimizer_->states(); }

 private:
  static void set(const Tensor& to, const Values& values) {
    std::copy(values.begin(), values.end(), reinterpret_cast<double*>(to.data));
  }

  std::unique_ptr<Device> device_;
  SingleRankWorld alone_;
  ParamStore params_;
  Arena none_;
  std::optional<GradBuffer> grads_;
  std::optional<Optimizer> optimizer_;
};

// The history of one tensor, from the formulas.
struct LambDefinition {
  OptimConfig config;
  double largest = 55;  // elements

  // A tensor after a step; the moments are formed from all past gradients.
  Values step(const Values& p, const std::vector<Values>& gradients, bool decays,
              const std::vector<Values>& past_values) const {
    const OptimConfig& c = config;
    const auto k = static_cast<double>(gradients.size());
    const double wd = decays ? 0.1 : 0, lr = 0.01;
    const bool is_l2 = c.kind == OptimizerKind::Lamb && !c.lamb_decoupled;
    const double bias1 = 1 - std::pow(c.beta1, k), bias2 = 1 - std::pow(c.beta2, k);
    const double share = c.kind == OptimizerKind::Lamb && !c.lamb_grad_averaging ? 1 : 1 - c.beta1;
    const auto corrected = [&](bool is_corrected, double bias) { return is_corrected ? bias : 1; };
    const bool v3 = c.kind == OptimizerKind::LambPreprint;
    const bool raw = c.kind == OptimizerKind::Lamb && !c.lamb_bias_correction;
    const double c1 = corrected(!v3 && !raw && c.kind != OptimizerKind::MyLamb3, bias1);
    const double c2 = corrected(!v3 && !raw, bias2);

    Values u(p.size()), noise(p.size());
    for (size_t i = 0; i < p.size(); ++i) {
      double m = 0, v = 0, q = 0, before = 0, deviation = 0;
      for (size_t s = 0; s < gradients.size(); ++s) {
        const double g = gradients[s][i] + (is_l2 ? wd * past_values[s][i] : 0);
        before = m;
        deviation = g - m;
        m = c.beta1 * m + share * g;
        v = c.beta2 * v + (1 - c.beta2) * g * g;
        q = c.beta2 * q + (1 - c.beta2) * deviation * deviation;
      }
      const double first = c.kind == OptimizerKind::MyLamb2 ? before : m;
      u[i] = first / c1 / (std::sqrt(v / c2) + c.eps);
      if (c.kind == OptimizerKind::MyLamb2) {
        noise[i] = deviation / c1 / (std::sqrt(q / c2) + c.eps);
      } else if (!is_l2) {
        u[i] += wd * p[i];
      }
    }
    const double np = norm_of(p), nu = norm_of(u), elements = static_cast<double>(p.size());
    const double clamped = std::max(np, 1e-5 * elements);
    double t = 1;
    switch (c.kind) {
      case OptimizerKind::Lamb:
        if ((c.nvlamb || wd != 0) && np != 0 && nu != 0) t = np / nu;
        break;
      case OptimizerKind::LambPaper: t = np != 0 && nu != 0 ? np / nu : 1; break;
      case OptimizerKind::LambPreprint: t = np != 0 && nu != 0 ? std::min(np, 10.0) / nu : 1; break;
      case OptimizerKind::MyLamb3: t = clamped / nu * (1 + c.alpha * elements / largest); break;
      case OptimizerKind::LambTp: t = np / nu; break;
      default: t = nu > 0 ? clamped / nu : 0;
    }
    Values next(p.size());
    for (size_t i = 0; i < p.size(); ++i) {
      next[i] = c.kind == OptimizerKind::MyLamb2 ? p[i] * (1 - lr * wd) - lr * t * u[i] -
                                                       lr * clamped / norm_of(noise) * noise[i]
                                                 : p[i] - lr * t * u[i];
    }
    return next;
  }
};

// Four steps of every tensor.
void expect_follows(const OptimConfig& config) {
  LambRun run(config);
  LambDefinition definition{config};
  std::vector<std::vector<Values>> gradients(lamb_tensors().size()), past(lamb_tensors().size());
  std::vector<Values> expected;
  for (size_t t = 0; t < lamb_tensors().size(); ++t) expected.push_back(run.value(t));
  for (int64_t step = 1; step <= 4; ++step) {
    double squares = 0;
    for (size_t t = 0; t < lamb_tensors().size(); ++t)
      squares += std::pow(kClipFactor * norm_of(LambRun::gradient(t, step)), 2);
    const bool clips = config.kind == OptimizerKind::Lamb && config.lamb_clip > 0 &&
                       std::sqrt(squares) > config.lamb_clip;
    const double factor = kClipFactor / (clips ? std::sqrt(squares) / config.lamb_clip : 1);
    run.step(step);
    for (size_t t = 0; t < lamb_tensors().size(); ++t) {
      Values g = LambRun::gradient(t, step);
      for (double& value : g) value *= factor;
      gradients[t].push_back(g);
      past[t].push_back(expected[t]);
      const bool decays = t < 2;
      expected[t] = definition.step(expected[t], gradients[t], decays, past[t]);
      const Values got = run.value(t);
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[t][i], 1e-13)
            << name_of_choice(config.kind) << ", step " << step << ", " << lamb_tensors()[t].name;
    }
  }
}

OptimConfig lamb_config(OptimizerKind kind) { return {.kind = kind, .beta2 = 0.95, .eps = 1e-6}; }

// Fails when a variant uses the bias correction, the clamp, the decay or the clip of another.
TEST(Lamb, FollowsItsDefinition) {
  for (const OptimizerKind kind :
       {OptimizerKind::Lamb, OptimizerKind::LambPaper, OptimizerKind::LambPreprint,
        OptimizerKind::MyLamb, OptimizerKind::MyLamb2, OptimizerKind::MyLamb3})
    expect_follows(lamb_config(kind));
  OptimConfig c = lamb_config(OptimizerKind::Lamb);
  c.lamb_clip = 0;
  expect_follows(c);
  c = lamb_config(OptimizerKind::Lamb);
  c.nvlamb = true;
  expect_follows(c);
  c = lamb_config(OptimizerKind::Lamb);
  c.lamb_decoupled = false;
  expect_follows(c);
  c = lamb_config(OptimizerKind::Lamb);
  c.lamb_bias_correction = c.lamb_grad_averaging = false;
  expect_follows(c);
  c = lamb_config(OptimizerKind::MyLamb3);
  c.alpha = 0.25;
  expect_follows(c);
  for (const int64_t solution : {0, 1}) {
    c = lamb_config(OptimizerKind::LambTp);
    c.lambtp_solution = solution;
    expect_follows(c);
  }
}

// Fails when a pass does not look at the decision, or the norm of a rejected step is remembered.
TEST(Lamb, RejectedStepChangesNothing) {
  for (const OptimizerKind kind : {OptimizerKind::Lamb, OptimizerKind::MyLamb2,
                                   OptimizerKind::MyLamb3, OptimizerKind::LambTp}) {
    OptimConfig config = lamb_config(kind);
    if (kind == OptimizerKind::LambTp) config.lambtp_solution = 3;
    LambRun run(config), undisturbed(config);
    run.step(1);
    undisturbed.step(1);
    const std::vector<Values> before = run.everything();
    run.step(2, false);
    EXPECT_EQ(run.everything(), before) << name_of_choice(kind);
    run.step(2);
    undisturbed.step(2);
    EXPECT_EQ(run.everything(), undisturbed.everything()) << name_of_choice(kind);
  }
}

// Fails when a parameter without a gradient and without weight decay divides 0 by 0.
TEST(Lamb, UpdateOfZerosStaysFinite) {
  for (const OptimizerKind kind : {OptimizerKind::Lamb, OptimizerKind::LambPaper,
                                   OptimizerKind::MyLamb, OptimizerKind::MyLamb2}) {
    LambRun run(lamb_config(kind));
    run.without_gradient = 3;
    run.step(1);
    for (const Values& values : run.everything())
      for (const double value : values) ASSERT_TRUE(std::isfinite(value)) << name_of_choice(kind);
  }
}

// Fails when a state or the tables of the norms are not planned.
TEST(Lamb, PlanCountsItsMemory) {
  const auto bytes = [](OptimizerKind kind, std::string_view purpose) {
    Config config = tiny_gpt();
    config.optim.kind = kind;
    const SmallRun run(config);
    EXPECT_EQ(run.device->allocated_bytes(), run.plan.memory_bytes());
    for (const MemoryUse& use : run.plan.memory)
      if (use.purpose == purpose) return use.bytes;
    return size_t{0};
  };
  const size_t adam = bytes(OptimizerKind::AdamW, "optimizer");
  EXPECT_EQ(bytes(OptimizerKind::Lamb, "optimizer"), adam);
  EXPECT_EQ(2 * bytes(OptimizerKind::MyLamb2, "optimizer"), 3 * adam);
  EXPECT_EQ(bytes(OptimizerKind::AdamW, "optimizer norms"), 0u);
  EXPECT_GT(bytes(OptimizerKind::Lamb, "optimizer norms"), 0u);
}

TEST(Lamb, StatesAreNamed) {
  const auto names = [](OptimConfig config) {
    std::vector<std::string> all;
    for (const OptimizerState& state : LambRun(config).states()) all.emplace_back(state.name);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(lamb_config(OptimizerKind::MyLamb)), (Names{"adam.m", "adam.v"}));
  EXPECT_EQ(names(lamb_config(OptimizerKind::MyLamb2)), (Names{"adam.m", "adam.v", "lamb.q"}));
  OptimConfig config = lamb_config(OptimizerKind::LambTp);
  config.lambtp_solution = 3;
  EXPECT_EQ(names(config), (Names{"adam.m", "adam.v", "lamb.update_norm"}));
}

}  // namespace
}  // namespace bev::test
