// Parameter counts of published models, counted by the program itself without a byte of weights.
#include <gtest/gtest.h>

#include "config/parse/load.h"
#include "plan/dry_run.h"

namespace bev {
namespace {

Plan counts_of(const std::vector<std::string>& args) {
  std::vector<std::string> all = args;
  all.insert(all.end(), {"--train.micro_batch", "1"});
  return dry_run(load(all).config);
}

// Faults that fail it: a bias forgotten, a tied matrix counted twice, padding left out.
TEST(ParameterCount, OfPublishedModels) {
  EXPECT_EQ(counts_of({"--model.preset", "gpt2-345m"}).parameters, 354'871'296);
  EXPECT_EQ(counts_of({"--model.preset", "yuan-asc22"}).parameters, 4'701'321'216);
  EXPECT_EQ(counts_of({"--model.preset", "llama2-7b"}).parameters, 6'738'415'616);
  EXPECT_EQ(counts_of({"--model.preset", "llama2-70b"}).parameters, 68'976'648'192);
  EXPECT_EQ(counts_of({"--model.preset", "gpt3-175b", "--model.vocab", "51200"}).parameters,
            174'615'846'912);
}

TEST(ParameterCount, ModulesAddUpToTheTotal) {
  const Plan plan = counts_of({"--model.preset", "gpt2-124m"});
  int64_t sum = 0;
  for (const ModuleCount& module : plan.modules) sum += module.elements;
  EXPECT_EQ(sum, plan.parameters);
  EXPECT_EQ(plan.parameters, 124'475'904);  // 124,439,808 of the published model + 47 padded rows
}

// By hand: 12 layers of 12 width^2, the head, and causal attention at half the square.
TEST(Flops, FollowTheRule) {
  const Plan plan = counts_of({"--model.preset", "gpt2-124m", "--train.sequence", "1024"});
  const double expected = 6.0 * (12.0 * 12 * 768 * 768 + 50304.0 * 768) + 6.0 * 12 * 768 * 1024;
  EXPECT_DOUBLE_EQ(plan.model_flops_per_token, expected);
  // Executed: products 2 m n k, three times; attention forward 2 and backward 5 products over half
  // the square (its diagonal included), against 6 in the rule.
  const double tokens = 1024;
  const double products = 6.0 * (12.0 * 12 * 768 * 768 + 50304.0 * 768) * tokens;
  const double pairs = tokens * (tokens + 1) / 2;
  const double attention = 12.0 * (4 + 10) * pairs * 768;
  EXPECT_DOUBLE_EQ(plan.step.flops, products + attention);
}

TEST(Flops, GrowWithMicroBatches) {
  const Plan one = counts_of({"--model.preset", "gpt2-124m", "--train.sequence", "64"});
  const Plan four = counts_of(
      {"--model.preset", "gpt2-124m", "--train.sequence", "64", "--train.global_batch", "4"});
  EXPECT_DOUBLE_EQ(four.step.flops, 4 * one.step.flops);
  EXPECT_EQ(four.arenas.keep, one.arenas.keep);
}

}  // namespace
}  // namespace bev
