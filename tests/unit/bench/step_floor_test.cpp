#include "bench/step_floor.h"

#include <gtest/gtest.h>

#include "bench/step_bench.h"
#include "ops/make_device.h"

namespace bev {
namespace {

Config small(DeviceKind kind) {
  Config config;
  config.model.layers = 2;
  config.model.width = 64;
  config.model.heads = 2;
  config.model.vocab = 100;
  config.train.sequence = 16;
  config.train.micro_batch = 2;
  config.train.global_batch = 4;
  config.device.kind = kind;
  config.device.threads = 1;
  return config;
}

TEST(StepFloor, BytesOfAnUpdate) {
  Config config = small(DeviceKind::Cpu);
  // f32: reads gradient, parameter and two moments, writes all but the gradient.
  EXPECT_EQ(optimizer_bytes(config, 10), 280);
  config.optim.kind = OptimizerKind::Sgd;
  EXPECT_EQ(optimizer_bytes(config, 10), 200);
  // Two passes: the gradient, parameter and moments read twice and written once.
  config.optim.kind = OptimizerKind::Lamb;
  EXPECT_EQ(optimizer_bytes(config, 10), 400);
  config = small(DeviceKind::Cuda);
  config.optim.kind = OptimizerKind::MyLamb;
  EXPECT_EQ(optimizer_bytes(config, 10), 420);
  config.optim.kind = OptimizerKind::MyLamb2;
  EXPECT_EQ(optimizer_bytes(config, 10), 580);
  config.optim.kind = OptimizerKind::AdamW;
  // bf16: the same with a master copy, and the parameter itself is only written.
  EXPECT_EQ(optimizer_bytes(config, 10), 300);
  config.optim.gradients = StatePrecision::Bf16;
  config.optim.first_moment = StatePrecision::Bf16;
  EXPECT_EQ(optimizer_bytes(config, 10), 240);
}

TEST(StepBench, StepsAgainstTheirFloor) {
  const StepBench b =
      bench_step(small(DeviceKind::Cpu), {.seconds = 0, .min_steps = 3, .floor = true});
  EXPECT_EQ(b.step.runs, 3);
  EXPECT_EQ(b.allocated_bytes, b.plan.memory_bytes());
  ASSERT_TRUE(b.floor.has_value());
  EXPECT_GT(b.floor->gemms, 0);
  EXPECT_EQ(b.floor->attention, 0);
  EXPECT_LT(b.floor->total(), b.step.median * 2);
  EXPECT_EQ(b.promised_flops, 0);
}

TEST(StepBench, CudaStepsAgainstTheirFloor) {
  const std::string why = why_no_cuda();
  if (!why.empty()) GTEST_SKIP() << why;
  const StepBench b =
      bench_step(small(DeviceKind::Cuda), {.seconds = 0, .min_steps = 20, .floor = true});
  EXPECT_GE(b.step.runs, 20);
  EXPECT_EQ(b.allocated_bytes, b.plan.memory_bytes());
  ASSERT_TRUE(b.floor.has_value());
  EXPECT_GT(b.floor->gemms, 0);
  EXPECT_GT(b.floor->attention, 0);
}

}  // namespace
}  // namespace bev
