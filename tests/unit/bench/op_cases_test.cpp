#include "bench/op_cases.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/step_bench.h"
#include "ops/make_device.h"
#include "support/small_run.h"
#include "support/tiny_models.h"

namespace bev {
namespace {

using Names = std::set<std::string>;

Names names_of(const Trace& trace) {
  Names names;
  for (const OpSpan& span : trace.spans()) names.insert(span.op);
  return names;
}

Names ops_of_a_step(const Config& config) {
  test::SmallRun run(config);
  Trace trace(*run.device);
  run.assembly.executor.trace_into(&trace);
  run.train(1);
  run.assembly.executor.trace_into(nullptr);
  return names_of(trace);
}

// The ops that the cases of one op issue.
Names issued_by(const BenchedOp& op, const Config& config, OpRig& rig) {
  const std::vector<OpCase> cases = op.cases({rig, config});
  Trace trace(rig.exec().device);
  rig.exec().trace = &trace;
  for (const OpCase& c : cases) c.run(rig.exec());
  rig.exec().trace = nullptr;
  rig.clear();
  return names_of(trace);
}

// With exactly the memory that a dry run finds.
void run_cases(const BenchedOp& op, const Config& config, Device& device) {
  OpRig rig(device, rig_sizes(device, [&](OpRig& dry_run) { issued_by(op, config, dry_run); }));
  issued_by(op, config, rig);
}

// Fails when a step calls an op that `bench op` does not time, or times under another name.
TEST(OpCases, EveryOpOfAStepIsTimedUnderItsName) {
  const std::unique_ptr<Device> device = make_null_device(DeviceKind::Reference, 1);
  OpRig rig(*device, {});
  for (const test::TinyModel& model : test::tiny_models()) {
    SCOPED_TRACE(model.name);
    Config config = model.config;
    for (const OptimizerKind kind :
         {OptimizerKind::AdamW, OptimizerKind::Sgd, OptimizerKind::Lamb, OptimizerKind::MyLamb2}) {
      config.optim.kind = kind;
      Names timed;
      for (const BenchedOp& op : benched_ops()) {
        for (const std::string& name : issued_by(op, config, rig)) {
          EXPECT_EQ(name, op.name);
          timed.insert(name);
        }
      }
      for (const std::string& name : ops_of_a_step(config)) {
        EXPECT_TRUE(timed.contains(name)) << name << " is not in benched_ops()";
        EXPECT_NE(class_of(name), "other") << name << " has no class in the breakdown";
      }
    }
  }
}

TEST(OpCases, RunOnTheCpu) {
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 1);
  for (const test::TinyModel& model : test::tiny_models()) {
    SCOPED_TRACE(model.name);
    Config config = model.config;
    config.device.kind = DeviceKind::Cpu;
    for (const BenchedOp& op : benched_ops()) {
      // Updates are of long stretches whatever the model: one model runs them.
      const bool is_long = class_of(op.name) == "optimizer" || class_of(op.name) == "reductions";
      if (!is_long || model.name == "gpt") run_cases(op, config, *device);
    }
  }
}

// The checked fronts accept the operands of a cuda run, short gradients and moments included.
TEST(OpCases, SuitThePlanOfAGpu) {
  for (const test::TinyModel& model : test::tiny_models()) {
    SCOPED_TRACE(model.name);
    Config config = model.config;
    config.device.kind = DeviceKind::Cuda;
    for (const StatePrecision precision : {StatePrecision::F32, StatePrecision::Bf16}) {
      config.optim.gradients = config.optim.first_moment = precision;
      const std::unique_ptr<Device> device = make_null_device(config.device);
      OpRig rig(*device, {});
      for (const BenchedOp& op : benched_ops()) issued_by(op, config, rig);
    }
  }
}

TEST(OpCases, CudaRunsThem) {
  const std::string why = why_no_cuda();
  if (!why.empty()) GTEST_SKIP() << why;
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cuda, 0);
  for (const test::TinyModel& model : test::tiny_models()) {
    SCOPED_TRACE(model.name);
    Config config = model.config;
    config.device.kind = DeviceKind::Cuda;
    for (const BenchedOp& op : benched_ops()) run_cases(op, config, *device);
    device->compute_stream().synchronize();
  }
}

std::vector<std::string> shapes_of(const Config& config, std::string_view name) {
  const std::unique_ptr<Device> device = make_null_device(config.device);
  OpRig rig(*device, {});
  std::vector<std::string> shapes;
  for (const BenchedOp& op : benched_ops()) {
    if (op.name != name) continue;
    for (const OpCase& c : op.cases({rig, config})) shapes.push_back(c.shape);
  }
  return shapes;
}

TEST(OpCases, DropoutIsACaseOfItsOwn) {
  Config config = test::tiny_gpt();
  EXPECT_EQ(shapes_of(config, "attention"), (std::vector<std::string>{"2 x 7, 2 heads x 8"}));
  EXPECT_TRUE(shapes_of(config, "dropout").empty());
  config.model.hidden_dropout = config.model.attention_dropout = 0.1;
  for (const char* op : {"attention", "attention_backward", "residual_norm", "residual_add"})
    EXPECT_EQ(shapes_of(config, op).size(), 2u) << op;
  EXPECT_EQ(shapes_of(config, "dropout").size(), 1u);
}

// Fails when one kind of attention is left out, or has no case to compare a bias with.
TEST(OpCases, EveryKindOfAttentionOfAnEncoderDecoder) {
  using Shapes = std::vector<std::string>;
  EXPECT_EQ(shapes_of(test::tiny_t5(), "attention"),
            (Shapes{"encoder 2 x 7, 2 heads x 8", "decoder 2 x 5, 2 heads x 8",
                    "cross 2 x 5 x 7, 2 heads x 8"}));
  const Config relative = test::tiny_huggingface_t5();
  EXPECT_EQ(shapes_of(relative, "attention_backward"),
            (Shapes{"encoder 2 x 7, 2 heads x 6", "encoder 2 x 7, 2 heads x 6, bias",
                    "encoder 2 x 7, 2 heads x 6, bias and its gradient",
                    "decoder 2 x 5, 2 heads x 6", "decoder 2 x 5, 2 heads x 6, bias",
                    "decoder 2 x 5, 2 heads x 6, bias and its gradient",
                    "cross 2 x 5 x 7, 2 heads x 6"}));
  EXPECT_EQ(shapes_of(relative, "relative_bias"),
            (Shapes{"encoder 2 heads x 7 x 7", "decoder 2 heads x 5 x 5"}));
}

TEST(OpCases, ProductsWithAndWithoutWhatIsFusedIntoThem) {
  const std::vector<std::string> shapes = shapes_of(test::tiny_gpt(), "matmul");
  const std::set<std::string> all(shapes.begin(), shapes.end());
  EXPECT_EQ(all.size(), shapes.size());
  for (const char* shape :
       {"qkv 14 x 48 x 16 weight gradient", "qkv 14 x 48 x 16 weight + bias gradient",
        "up 14 x 64 x 16 forward", "up 14 x 64 x 16 forward + bias, activation",
        "down 14 x 16 x 64 forward + bias, residual", "down 14 x 16 x 64 input gradient",
        "down 14 x 16 x 64 input gradient, activation", "head 5 x 29 x 16 forward"})
    EXPECT_TRUE(all.contains(shape)) << shape;
  // Without biases and with a gate, five layers of three products remain; two join the residual.
  EXPECT_EQ(shapes_of(test::tiny_llama(), "matmul").size(), 17u);
}

}  // namespace
}  // namespace bev
