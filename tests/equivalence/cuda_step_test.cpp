// Whole training steps on the GPU: against the reference, against themselves, and against the plan.
#include <gtest/gtest.h>

#include <map>

#include "support/small_run.h"
#include "support/tiny_models.h"

namespace bev::test {
namespace {

// Wide enough for tensor cores, cuDNN and wide loads, small enough for the reference.
Config medium(Config c) {
  c.model.width = 128;
  c.model.heads = 2;
  c.model.kv_heads = c.model.kv_heads > 0 ? 1 : 0;
  c.model.ffn = c.model.ffn > 0 ? 192 : 0;
  c.model.vocab = 200;
  c.model.positions = 72;
  c.model.init_std = 0.05;
  c.train.sequence = 70;
  c.train.micro_batch = 1;
  c.train.global_batch = 2;
  c.loss.chunk = 0;
  return c;
}

std::vector<TinyModel> models() {
  std::vector<TinyModel> all = tiny_models();
  all.push_back({"medium_gpt", medium(tiny_gpt())});
  all.push_back({"medium_llama", medium(tiny_llama())});
  Config dropout = medium(tiny_gpt());
  dropout.model.hidden_dropout = dropout.model.attention_dropout = 0.1;
  all.push_back({"medium_gpt_dropout", dropout});
  Config bert = medium(tiny_bert());
  bert.optim.lr = 1e-3;  // at 0.01 its losses jump, and differences grow with them
  bert.train.micro_batch = 2;
  bert.train.global_batch = 4;
  all.push_back({"medium_bert", bert});
  // The smallest BERT of the study of large batches, of 4 layers x 128: heads of 8.
  Config narrow = bert;
  narrow.model.layers = 4;
  narrow.model.heads = 16;
  all.push_back({"bert_with_heads_of_8", narrow});
  narrow.model.norm_placement = NormPlacement::Post;
  narrow.model.activation = Activation::GeluErf;
  narrow.model.hidden_dropout = narrow.model.attention_dropout = 0.1;
  all.push_back({"post_norm_bert_with_heads_of_8_dropout", narrow});
  return all;
}

Config on_cuda(Config c, Precision precision, bool deterministic = false) {
  c.device.kind = DeviceKind::Cuda;
  c.device.precision = precision;
  c.device.deterministic = deterministic;
  if (precision == Precision::F16) c.loss.scale = 256;
  return c;
}

class CudaStep : public ::testing::TestWithParam<TinyModel> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }
  static void expect_same_bits(SmallRun& a, SmallRun& b) {
    const std::vector<double> la = a.train(3), lb = b.train(3);
    EXPECT_EQ(la, lb);
    EXPECT_TRUE(same_bits(a.assembly.params, b.assembly.params, &Param::grad));
    EXPECT_TRUE(same_bits(a.assembly.params, b.assembly.params, &Param::value));
  }
};

// Fault that fails it: what autotuning leaves behind in gradients, sums or counters takes part in
// the steps.
TEST_P(CudaStep, AutotuningLeavesNoTrace) {
  for (const int64_t micros : {1, 2, 3}) {
    Config config = on_cuda(GetParam().config, Precision::Bf16, true);
    config.train.global_batch = micros * config.train.micro_batch;
    SmallRun plain(config), autotuned(config);
    autotuned.stepper.autotune(autotuned.loader.next());
    plain.loader.next();
    expect_same_bits(plain, autotuned);
  }
}

// Faults that fail it: nothing is captured; a graph is launched for other memory, another
// scale, or a micro-batch that adds where it began gradients.
TEST_P(CudaStep, GraphsGiveTheSameBits) {
  for (const int64_t micros : {1, 3}) {
    Config config = on_cuda(GetParam().config, Precision::Bf16, true);
    config.train.global_batch = micros * config.train.micro_batch;
    SmallRun captured(config);
    config.device.graphs = false;
    SmallRun issued(config);
    EXPECT_EQ(captured.train(5), issued.train(5));
    EXPECT_TRUE(same_bits(captured.assembly.params, issued.assembly.params, &Param::grad));
    EXPECT_TRUE(same_bits(captured.assembly.params, issued.assembly.params, &Param::value));
    EXPECT_GT(captured.assembly.executor.graph_launches(), 0);
    EXPECT_EQ(issued.assembly.executor.graph_launches(), 0);
  }
}

// Gradients, not only the loss: one that is wrong by 1e-4 hides in the loss.
// Fault that fails it: any op of the backend that computes something else.
TEST_P(CudaStep, FollowsReference) {
  SmallRun reference(GetParam().config);
  std::vector<double> truth = reference.train(1);
  std::map<std::string, std::vector<double>> gradients;
  for (Param* param : reference.assembly.params.all())
    gradients[param->spec.name] = values_of(param->grad);
  for (const double loss : reference.train(2)) truth.push_back(loss);
  struct Level {
    Precision precision;
    double loss, gradient;
  };
  // Sums of hundreds of roundings of 2^-24, 2^-11 and 2^-8, through a model of a dozen layers.
  for (const Level& level : {Level{Precision::F32, 2e-5, 1e-4}, Level{Precision::F16, 5e-3, 2e-2},
                             Level{Precision::Bf16, 2e-2, 1.2e-1}}) {
    SCOPED_TRACE(name_of_choice(level.precision));
    SmallRun cuda(on_cuda(GetParam().config, level.precision));
    const std::vector<double> start = cuda.train(1);
    EXPECT_NEAR(truth[0], start[0], level.loss * truth[0]);
    // The gradient as it stands carries the loss scale.
    const double scale = level.precision == Precision::F16 ? 256 : 1;
    double worst = 0;
    for (Param* param : cuda.assembly.params.all()) {
      if (has_no_gradient(cuda.config.model, param->spec.name)) continue;
      const std::vector<double> got = values_of(*cuda.device, param->grad);
      const std::vector<double>& want = gradients[param->spec.name];
      double difference = 0, norm = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        difference += (got[i] / scale - want[i]) * (got[i] / scale - want[i]);
        norm += want[i] * want[i];
      }
      const double relative = difference > 0 ? std::sqrt(difference / norm) : 0;
      EXPECT_LE(relative, level.gradient) << param->spec.name;
      worst = std::max(worst, relative);
    }
    const std::vector<double> rest = cuda.train(2);
    for (size_t i = 0; i < rest.size(); ++i)
      EXPECT_NEAR(truth[i + 1], rest[i], 3 * level.loss * truth[i + 1]);
    RecordProperty("worst_gradient_" + std::string(name_of_choice(level.precision)),
                   std::to_string(worst));
  }
}

// Fault that fails it: a float atomic, an algorithm chosen by time, memory read before it is
// written.
TEST_P(CudaStep, TwoRunsAreBitwiseEqual) {
  for (const Precision precision : {Precision::F32, Precision::Bf16, Precision::F16}) {
    const Config c = on_cuda(GetParam().config, precision, true);
    SmallRun a(c), b(c);
    expect_same_bits(a, b);
  }
}

// Fault that fails it: an activation fused into a GEMM that differs from the one recomputed.
TEST_P(CudaStep, RecomputationChangesNoBit) {
  for (const Precision precision : {Precision::F32, Precision::Bf16}) {
    const Config kept = on_cuda(GetParam().config, precision, true);
    Config full = kept, grouped = kept, selective = kept;
    full.recompute.granularity = Recompute::Full;
    grouped.recompute = {
        .granularity = Recompute::Full, .method = RecomputeMethod::Uniform, .layers = 2};
    selective.recompute.granularity = Recompute::Selective;
    for (const Config& other : {full, grouped, selective}) {
      SmallRun a(kept), b(other);
      expect_same_bits(a, b);
    }
  }
}

class CudaMicroBatches : public CudaStep {};

// Fault that fails it: Param::accumulate() returning true always, beta 1 at the first GEMM.
TEST_P(CudaMicroBatches, FourTimesOneEqualsOneTimesFour) {
  Config whole = on_cuda(GetParam().config, Precision::F32), cut = whole;
  whole.train.global_batch = cut.train.global_batch = 4;
  whole.train.micro_batch = 4;
  cut.train.micro_batch = 1;
  SmallRun a(whole), b(cut);
  a.train(1);
  b.train(1);
  EXPECT_LE(largest_difference(a.config.model, a.assembly.params, b.assembly.params, &Param::grad),
            1e-4);
}

// Fault that fails it: a report that is overwritten before it is collected, tokens that are
// replaced while they are read.
TEST_P(CudaStep, StepsIssuedAheadGiveTheSameBits) {
  const Config c = on_cuda(GetParam().config, Precision::Bf16, true);
  SmallRun together(c), ahead(c);
  const std::vector<double> one_by_one = together.train(6);
  std::vector<double> late;
  for (int i = 0; i < 6; ++i) {
    ahead.stepper.submit(ahead.loader.next());
    if (ahead.stepper.in_flight() > 2) late.push_back(ahead.stepper.collect().loss);
  }
  while (ahead.stepper.in_flight() > 0) late.push_back(ahead.stepper.collect().loss);
  EXPECT_EQ(one_by_one, late);
  EXPECT_TRUE(same_bits(together.assembly.params, ahead.assembly.params, &Param::value));
}

// Fault that fails it: a workspace that an op takes but the plan does not book, or the reverse.
TEST_P(CudaStep, RunUsesThePlanToTheByte) {
  for (const Precision precision : {Precision::F32, Precision::Bf16, Precision::F16}) {
    for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
      for (const bool deterministic : {false, true}) {
        Config c = on_cuda(GetParam().config, precision, deterministic);
        c.recompute.granularity = recompute;
        SmallRun run(c);
        run.train(2);
        run.assembly.executor.evaluate(run.loader.next());
        EXPECT_EQ(run.assembly.executor.peaks().keep, run.plan.arenas.keep);
        EXPECT_EQ(run.assembly.executor.peaks().scratch, run.plan.arenas.scratch);
        EXPECT_EQ(run.assembly.executor.peaks().recompute, run.plan.arenas.recompute);
        EXPECT_EQ(run.device->allocated_bytes(), run.plan.memory_bytes());
      }
    }
  }
}

// Short gradients and moments follow the long ones for a few steps.
// Fault that fails it: moments rounded always down, a gradient of another parameter's range.
TEST_P(CudaStep, ShortStateFollowsLongState) {
  const Config c = on_cuda(GetParam().config, Precision::Bf16);
  Config s = c;
  s.optim.gradients = s.optim.first_moment = s.optim.second_moment = StatePrecision::Bf16;
  SmallRun a(c), b(s);
  const std::vector<double> la = a.train(5), lb = b.train(5);
  for (size_t i = 0; i < la.size(); ++i) EXPECT_NEAR(la[i], lb[i], 0.03 * la[i]);
  EXPECT_LT(b.plan.memory_bytes(), a.plan.memory_bytes());
  EXPECT_EQ(b.device->allocated_bytes(), b.plan.memory_bytes());
}

INSTANTIATE_TEST_SUITE_P(All, CudaStep, ::testing::ValuesIn(models()),
                         [](const auto& model) { return model.param.name; });
INSTANTIATE_TEST_SUITE_P(All, CudaMicroBatches,
                         ::testing::ValuesIn(with_independent_samples(models())),
                         [](const auto& model) { return model.param.name; });

// A scale that must overflow at first: every decision of the device is what the rule gives on the
// host for the same overflows, and a skipped step leaves the weights alone.
// Fault that fails it: a learning rate that advances on a skipped step, hysteresis left out.
TEST(CudaOverflow, FollowsTheRule) {
  if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  Config c = on_cuda(medium(tiny_gpt()), Precision::F16);
  c.loss.scale = 0;
  c.loss.initial_scale = 0x1p40;
  c.loss.scale_window = 3;
  c.optim.decay = LrDecay::Linear;
  c.optim.warmup_iterations = 4;
  c.train.iterations = 40;
  SmallRun run(c);
  std::vector<double> state(kUpdateStates), decision(kUpdateDecisions);
  const LossScaling scaling = scaling_from(c);
  reset_update_state(scaling, state.data());
  const LrSchedule schedule = lr_schedule_from(c, run.plan.batch.global_batch, run.plan.iterations);
  constexpr double kLoss[] = {1, 1};
  int skipped = 0, applied = 0;
  for (int i = 0; i < 40; ++i) {
    const std::vector<double> before = values_of(*run.device, run.assembly.params.all()[0]->value);
    const StepResult result = run.stepper.step(run.loader.next());
    decide_update(
        result.applied ? 1 : INFINITY, kLoss,
        {.samples = run.plan.batch.global_batch, .scaling = scaling, .schedule = schedule},
        state.data(), decision.data());
    EXPECT_EQ(result.loss_scale, decision[kUsedScale]) << "step " << i;
    EXPECT_NEAR(result.lr, decision[kRate], 1e-15) << "step " << i;
    EXPECT_NEAR(result.next_lr, decision[kNextRate], 1e-15) << "step " << i;
    (result.applied ? applied : skipped) += 1;
    if (!result.applied) {
      EXPECT_EQ(before, values_of(*run.device, run.assembly.params.all()[0]->value));
    }
  }
  EXPECT_GT(skipped, 3);
  EXPECT_GT(applied, 10);
}

}  // namespace
}  // namespace bev::test
