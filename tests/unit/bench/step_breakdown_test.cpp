#include <gtest/gtest.h>

#include "base/json.h"
#include "bench/step_bench.h"
#include "support/tiny_models.h"

namespace bev {
namespace {

TEST(StepBreakdown, ClassesAndGapsAddUp) {
  const OpSpan spans[] = {{"norm", 1, 2},          {"matmul", 2, 5},  {"new_op", 5, 5.5},
                          {"norm_backward", 6, 8}, {"matmul", 8, 12}, {"fill", 13, 14}};
  const StepBreakdown b = break_down(spans);
  EXPECT_EQ(b.total, 13);
  EXPECT_EQ(b.gaps(), 1.5);
  ASSERT_EQ(b.classes.size(), 4u);
  EXPECT_EQ(b.classes[0].name, "products");
  EXPECT_EQ(b.classes[0].calls(), 2);
  EXPECT_EQ(b.classes[0].seconds(), 7);
  EXPECT_EQ(b.classes[1].name, "norm");
  ASSERT_EQ(b.classes[1].ops.size(), 2u);
  EXPECT_EQ(b.classes[1].ops[0].op, "norm_backward") << "the longest first";
  EXPECT_EQ(b.classes[2].name, "fills and copies");
  EXPECT_EQ(b.classes[3].name, "other");
  EXPECT_EQ(b.classes[3].seconds(), 0.5);
}

// Fails when the list of classes is interrupted, or lists an op twice.
TEST(StepBreakdown, ClassesAreInOrder) {
  const OpSpan spans[] = {{"scale", 0, 1},    {"top_k_hits", 1, 2}, {"dropout", 2, 3},
                          {"activate", 3, 4}, {"adamw", 4, 5},      {"residual_add", 5, 6},
                          {"embedding", 6, 7}};
  std::vector<std::string_view> names;
  for (const ClassTime& c : break_down(spans).classes) names.push_back(c.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"residual and dropout", "activation", "loss",
                                                  "embedding", "optimizer"}));
}

TEST(StepBreakdown, OfNothing) {
  const StepBreakdown b = break_down({});
  EXPECT_EQ(b.total, 0);
  EXPECT_TRUE(b.classes.empty());
}

TEST(StepBench, BreakdownOfOneStepMore) {
  Config config = test::tiny_gpt();
  config.device.kind = DeviceKind::Cpu;
  config.device.threads = 1;
  const StepBench bench = bench_step(config, {.seconds = 0, .min_steps = 2, .breakdown = true});
  EXPECT_EQ(bench.step.runs, 2);
  ASSERT_TRUE(bench.breakdown.has_value());
  EXPECT_GE(bench.breakdown->gaps(), 0);

  const Json whole = Json::parse(step_bench_json(bench));
  EXPECT_EQ(whole.at("autotune"), whole.at("rehearsed"));  // until 0.2
  const Json& json = whole.at("breakdown");
  double sum = json.at("gaps_seconds");
  for (const Json& c : json.at("classes")) {
    double of_class = 0;
    int64_t calls = 0;
    for (const Json& op : c.at("ops")) {
      of_class += op.at("seconds").get<double>();
      calls += op.at("calls").get<int64_t>();
    }
    EXPECT_NEAR(c.at("seconds"), of_class, 1e-12);
    EXPECT_EQ(c.at("calls"), calls);
    sum += of_class;
  }
  EXPECT_NEAR(sum, json.at("traced_seconds"), 1e-9);
  // Two micro-batches of two layers, each once forwards and once backwards.
  const Json& attention = json.at("classes").at(1);
  EXPECT_EQ(attention.at("class"), "attention");
  EXPECT_EQ(attention.at("calls"), 8);
  const std::string table = step_bench_table(bench);
  for (const char* row : {"products", "gaps", "traced, first op to last", "untraced, median"})
    EXPECT_NE(table.find(row), std::string::npos) << row;
}

}  // namespace
}  // namespace bev
