// Layouts that others have run and written about, by the flags they gave Megatron-LM, against what
// they printed.
#include <gtest/gtest.h>

#include "config/parse/load.h"
#include "plan/layout_plan.h"

namespace bev {
namespace {

using Args = std::vector<std::string>;

LayoutPlan plan_of(Args args, const std::string& ranks) {
  const Args common{"--device",
                    "cuda",
                    "--micro-batch-size",
                    "1",
                    "--seq-length",
                    "2048",
                    "--max-position-embeddings",
                    "2048",
                    "--vocab-size",
                    "50257",
                    "--make-vocab-size-divisible-by",
                    "128",
                    "--fp16",
                    "--threads",
                    ranks};
  args.insert(args.end(), common.begin(), common.end());
  return plan_layout(load(args).config);
}

// AWS's test case: "number of parameters on (tensor, pipeline) model parallel rank (4, 0)".
TEST(PublishedLayout, Gpt7BillionOnEightTensorRanks) {
  const LayoutPlan plan =
      plan_of({"--num-layers", "36", "--hidden-size", "4096", "--num-attention-heads", "32",
               "--tensor-model-parallel-size", "8", "--global-batch-size", "288", "--train-samples",
               "146484375"},
              "8");
  EXPECT_EQ(plan.shown.model.padded_vocab, 51200);
  EXPECT_EQ(plan.most_parameters(), 941'594'624);
  EXPECT_EQ(plan.shown.iterations, 508'626);
  EXPECT_EQ(plan.shown.batch.micros, 288);
  EXPECT_EQ(plan.bubble, 0);
}

Args juwels() {
  return {"--sequence-parallel",
          "--use-distributed-optimizer",
          "--recompute-activations",
          "--position-embedding-type",
          "rope",
          "--train-samples",
          "300_000_000",
          "--recompute-granularity",
          "selective",
          "--use-flash-attn"};
}

TEST(PublishedLayout, Gpt175BillionOn384Ranks) {
  Args args = juwels();
  args.insert(args.end(), {"--num-layers", "96", "--hidden-size", "12288", "--num-attention-heads",
                           "96", "--tensor-model-parallel-size", "8",
                           "--pipeline-model-parallel-size", "8", "--global-batch-size", "96"});
  const LayoutPlan plan = plan_of(args, "384");
  EXPECT_EQ(plan.shown.layout.data, 6);
  EXPECT_EQ(plan.shown.batch.micros, 16);
  EXPECT_EQ(plan.shown.iterations, 3'125'000);
  EXPECT_DOUBLE_EQ(plan.bubble, 7.0 / 16);
}

TEST(PublishedLayout, Gpt13BillionOn32Ranks) {
  Args args = juwels();
  args.insert(args.end(),
              {"--num-layers", "40", "--hidden-size", "5120", "--ffn-hidden-size", "20480",
               "--num-attention-heads", "32", "--tensor-model-parallel-size", "2",
               "--pipeline-model-parallel-size", "4", "--global-batch-size", "1024"});
  const LayoutPlan plan = plan_of(args, "32");
  EXPECT_EQ(plan.shown.layout.data, 4);
  EXPECT_EQ(plan.shown.batch.micros, 256);
  EXPECT_EQ(plan.shown.iterations, 292'968);
}

TEST(PublishedLayout, BigScience13BillionWithARisingBatch) {
  const LayoutPlan plan = plan_of({"--num-layers",
                                   "40",
                                   "--hidden-size",
                                   "5120",
                                   "--num-attention-heads",
                                   "32",
                                   "--tensor-model-parallel-size",
                                   "2",
                                   "--pipeline-model-parallel-size",
                                   "4",
                                   "--global-batch-size",
                                   "1024",
                                   "--rampup-batch-size",
                                   "16",
                                   "16",
                                   "5_000_000",
                                   "--train-samples",
                                   "300_000_000",
                                   "--use-distributed-optimizer",
                                   "--checkpoint-activations"},
                                  "128");
  EXPECT_EQ(plan.shown.layout.data, 16);
  EXPECT_EQ(plan.shown.iterations, 311'541);
}

// The largest model of "Efficient Large-Scale Language Model Training on GPU Clusters" (2021).
TEST(PublishedLayout, ATrillionParametersOn4096Ranks) {
  const LayoutPlan plan =
      plan_of({"--num-layers", "128", "--hidden-size", "25600", "--num-attention-heads", "160",
               "--tensor-model-parallel-size", "8", "--pipeline-model-parallel-size", "64",
               "--global-batch-size", "3072"},
              "4096");
  EXPECT_EQ(plan.shown.model_parameters, 1'008'038'758'400);
  EXPECT_EQ(plan.ranks.size(), 64);
  EXPECT_DOUBLE_EQ(plan.bubble, 63.0 / 384);
  EXPECT_EQ(plan.ranks[0].slots, 64);
  EXPECT_EQ(plan.ranks[63].slots, 1);
}

}  // namespace
}  // namespace bev
