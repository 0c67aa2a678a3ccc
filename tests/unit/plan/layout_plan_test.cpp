#include "plan/layout_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "config/parse/load.h"
#include "ops/cross_entropy.h"

namespace bev {
namespace {

using Args = std::vector<std::string>;

// Eight layers of width 32 in float32, four micro-batches of 16 tokens on each data rank.
constexpr double kTokens = 16, kWidth = 32, kLayers = 8, kMicros = 4, kFloat = 4;
constexpr double kHidden = kTokens * kWidth * kFloat;

Args with(const Args& more) {
  Args args{"--num-layers",           "8",  "--hidden-size", "32",  "--num-attention-heads", "4",
            "--vocab-size",           "64", "--seq-length",  "16",  "--micro-batch-size",    "1",
            "--model.vocab_multiple", "1",  "--device",      "cpu", "--device.threads",      "1"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

Config config_of(const Args& more) { return load(with(more)).config; }

LayoutPlan plan_of(const Args& more) { return plan_layout(config_of(more)); }

size_t bytes_for(const std::vector<MemoryUse>& uses, std::string_view purpose) {
  for (const MemoryUse& use : uses)
    if (use.purpose == purpose) return use.bytes;
  return 0;
}

std::map<std::string, size_t> by_purpose(const std::vector<MemoryUse>& uses) {
  std::map<std::string, size_t> result;
  for (const MemoryUse& use : uses) result[use.purpose] = use.bytes;
  return result;
}

// Faults that fail it: a stage that stands for one with other layers, replicated heads that one
// tensor rank has more of, slots of another stage.
TEST(LayoutPlan, EveryRankIsLikeTheOneThatStandsForIt) {
  const std::vector<Args> layouts{
      {"--threads", "8", "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2",
       "--global-batch-size", "8"},
      {"--threads", "4", "--tensor-model-parallel-size", "4", "--model.kv_heads", "2",
       "--sequence-parallel"},
      {"--threads", "6", "--pipeline-model-parallel-size", "3", "--use-distributed-optimizer",
       "--global-batch-size", "12"},
      {"--threads", "5", "--pipeline-model-parallel-size", "5",
       "--decoder-first-pipeline-num-layers", "1", "--global-batch-size", "7"},
      {"--threads", "4", "--pipeline-model-parallel-size", "4", "--recompute-granularity", "full",
       "--recompute-num-layers", "1", "--global-batch-size", "4"},
      {"--threads", "6", "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "3",
       "--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers",
       "2", "--distribute-saved-activations", "--global-batch-size", "4"},
      {"--threads", "3", "--pipeline-model-parallel-size", "3", "--parallel.chunks", "2",
       "--global-batch-size", "6"},
      {"--threads", "4", "--pipeline-model-parallel-size", "4", "--parallel.schedule",
       "zero-bubble", "--global-batch-size", "6"},
  };
  for (const Args& layout : layouts) {
    const Config config = config_of(layout);
    const LayoutPlan plan = plan_layout(config);
    const ParallelLayout shape = plan.shown.layout;
    for (int rank = 0; rank < shape.world(); ++rank) {
      const Plan own = dry_run(config, {.rank = rank});
      const int stage = shape.grid().coordinate(rank, Axis::Pipeline);
      const RankPlan& like = plan.ranks[static_cast<size_t>(stage)];
      EXPECT_EQ(by_purpose(own.memory), by_purpose(like.memory))
          << describe(shape) << ", rank " << rank;
      EXPECT_EQ(own.parameters, like.parameters) << describe(shape) << ", rank " << rank;
      EXPECT_EQ(own.slots, like.slots);
      EXPECT_DOUBLE_EQ(own.sent.total(), like.sent.total()) << describe(shape) << ", rank " << rank;
    }
  }
}

// No layout computes more or less than one rank.
TEST(LayoutPlan, RanksDivideTheWork) {
  const double alone = plan_of({"--global-batch-size", "8"}).flops();
  for (const Args& layout :
       {Args{"--threads", "2", "--tensor-model-parallel-size", "2"}, Args{"--threads", "4"},
        Args{"--threads", "8", "--tensor-model-parallel-size", "2",
             "--pipeline-model-parallel-size", "2"}}) {
    Args all = layout;
    all.insert(all.end(), {"--global-batch-size", "8"});
    EXPECT_DOUBLE_EQ(plan_of(all).flops(), alone);
  }
}

TEST(LayoutPlan, ShowsTheRankThatIsAskedFor) {
  const Config config = config_of({"--threads", "4", "--pipeline-model-parallel-size", "4"});
  const LayoutPlan plan = plan_layout(config, 2);
  EXPECT_EQ(plan.shown.rank, 2);
  EXPECT_EQ(plan.shown.parameters, plan.ranks[2].parameters);
  ASSERT_EQ(plan.held.size(), 1);
  EXPECT_EQ(plan.held[0].first_block, 4);
  EXPECT_LT(plan.shown.parameters, plan.most_parameters());
  EXPECT_EQ(plan.shown.model_parameters, plan_of({}).shown.parameters);
}

TEST(LayoutPlan, BubblesOfFourRanksAndEightMicroBatches) {
  const auto bubble = [](const Args& schedule) {
    Args args{"--threads", "4", "--pipeline-model-parallel-size", "4", "--global-batch-size", "8"};
    args.insert(args.end(), schedule.begin(), schedule.end());
    return plan_of(args).bubble;
  };
  EXPECT_DOUBLE_EQ(bubble({}), 0.375);
  EXPECT_DOUBLE_EQ(bubble({"--num-layers-per-virtual-pipeline-stage", "1"}), 0.1875);
  EXPECT_DOUBLE_EQ(bubble({"--parallel.schedule", "zero-bubble"}), 0.125);
}

// By hand: a ring over two ranks sends as much as it sums. Each layer sums its hidden state twice
// forward and twice backward, the embedding once, the head once; the head also gathers what its
// softmax needs of each token.
TEST(Sent, AlongTheTensorAxis) {
  const LayoutPlan plan =
      plan_of({"--threads", "2", "--tensor-model-parallel-size", "2", "--global-batch-size", "4"});
  const double statistics = kTokens * static_cast<int>(ops::kSoftmaxStats) * kFloat;
  EXPECT_DOUBLE_EQ(plan.shown.sent.tensor, kMicros * ((4 * kLayers + 2) * kHidden + statistics));
  EXPECT_EQ(plan.shown.sent.data, 0);
  EXPECT_EQ(plan.shown.sent.pipeline, 0);
  // The norm of the gradient.
  EXPECT_EQ(plan.shown.sent.scalars, 8);
}

// Reduce-scatter and all-gather together are an all-reduce; the gathers are done again backward,
// since nothing gathered is kept, and the gradients of norms and biases between are summed.
TEST(Sent, SequenceParallelismTradesSumsForGathers) {
  const Args tensor{"--threads", "2", "--tensor-model-parallel-size", "2"};
  Args sequence = tensor;
  sequence.emplace_back("--sequence-parallel");
  EXPECT_GE(plan_of(sequence).shown.sent.tensor, plan_of(tensor).shown.sent.tensor);
}

// Gathers before the backward of each group; what is computed again is summed again, except what
// leaves a group.
TEST(Sent, ForRecomputation) {
  const auto sent = [](const Args& recompute) {
    Args args{"--threads", "2", "--tensor-model-parallel-size", "2", "--global-batch-size", "4"};
    args.insert(args.end(), recompute.begin(), recompute.end());
    return plan_of(args).shown.sent.tensor;
  };
  const double kept = sent({});
  Args full{"--recompute-granularity", "full"};
  const double blocks = sent(full);
  EXPECT_DOUBLE_EQ(blocks - kept, kMicros * kLayers * kHidden);
  full.emplace_back("--distribute-saved-activations");
  EXPECT_DOUBLE_EQ(sent(full) - blocks, kMicros * kLayers * kHidden / 2);
  full.insert(full.end(), {"--recompute-method", "uniform", "--recompute-num-layers", "3"});
  EXPECT_DOUBLE_EQ(sent(full) - kept, kMicros * ((2 * kLayers - 3) * kHidden + 3 * kHidden / 2));
}

// Bytes of one micro-batch, by hand: what lies between groups, and what backward needs of blocks.
class KeptForBackward : public ::testing::Test {
 protected:
  static ArenaSizes arenas_of(Args layout, const Args& recompute, int rank = 0) {
    layout.insert(layout.end(), recompute.begin(), recompute.end());
    return dry_run(config_of(layout), {.rank = rank}).arenas;
  }
  static Args full(const char* method, const char* layers) {
    return {"--recompute-granularity", "full", "--recompute-method", method,
            "--recompute-num-layers",  layers};
  }
  static Args distributed(Args recompute) {
    recompute.emplace_back("--distribute-saved-activations");
    return recompute;
  }
  static constexpr size_t kInput = static_cast<size_t>(kHidden), kBlocks = 8;
};

TEST_F(KeptForBackward, OneInputOfEachGroup) {
  const ArenaSizes each = arenas_of({}, {"--recompute-granularity", "full"});
  for (const char* method : {"block", "uniform"}) {
    const ArenaSizes same = arenas_of({}, full(method, method[0] == 'b' ? "8" : "1"));
    EXPECT_EQ(same.keep, each.keep);
    EXPECT_EQ(same.recompute, each.recompute);
  }
  const std::map<size_t, size_t> groups{{2, 4}, {3, 3}, {8, 1}};
  for (const auto& [size, count] : groups) {
    const ArenaSizes grouped = arenas_of({}, full("uniform", std::to_string(size).c_str()));
    EXPECT_EQ(each.keep - grouped.keep, (kBlocks - count) * kInput) << size;
    EXPECT_EQ(grouped.recompute, size * each.recompute + (size - 1) * kInput) << size;
  }
}

TEST_F(KeptForBackward, AllOfTheOtherBlocks) {
  const ArenaSizes each = arenas_of({}, {"--recompute-granularity", "full"});
  const ArenaSizes three = arenas_of({}, full("block", "3"));
  EXPECT_EQ(three.keep, each.keep + (kBlocks - 3) * each.recompute);
  EXPECT_EQ(three.recompute, each.recompute);
  EXPECT_EQ(arenas_of({}, {}).keep, each.keep + kBlocks * each.recompute);
}

// Fault that fails it: blocks counted from the first of the model.
TEST_F(KeptForBackward, TheSameInEachStage) {
  const Args pipeline{"--threads",           "2", "--pipeline-model-parallel-size", "2",
                      "--global-batch-size", "4"};
  for (const int rank : {0, 1}) {
    const ArenaSizes each = arenas_of(pipeline, {"--recompute-granularity", "full"}, rank);
    const ArenaSizes one = arenas_of(pipeline, full("block", "1"), rank);
    EXPECT_EQ(one.keep, each.keep + 3 * each.recompute);
    const ArenaSizes grouped = arenas_of(pipeline, full("uniform", "3"), rank);
    EXPECT_EQ(grouped.keep, each.keep - 2 * kInput);
  }
}

TEST_F(KeptForBackward, APartOfEachInputThatIsDistributed) {
  const Args tensor{"--threads", "4", "--tensor-model-parallel-size", "4"};
  for (const auto& [recompute, groups] :
       {std::pair{full("block", "8"), 8}, std::pair{full("uniform", "3"), 3},
        std::pair{full("block", "2"), 2}}) {
    const ArenaSizes whole = arenas_of(tensor, recompute);
    const ArenaSizes parts = arenas_of(tensor, distributed(recompute));
    EXPECT_EQ(whole.keep - parts.keep, static_cast<size_t>(groups) * kInput * 3 / 4);
    EXPECT_EQ(parts.recompute, whole.recompute + kInput);
  }
  const ArenaSizes one = arenas_of({}, full("uniform", "3"));
  EXPECT_EQ(arenas_of({}, distributed(full("uniform", "3"))).keep, one.keep);
}

// What a stage receives is not kept whole either: its gradient takes its place.
TEST_F(KeptForBackward, APartOfWhatAStageReceives) {
  const Args layout{"--threads",
                    "4",
                    "--tensor-model-parallel-size",
                    "2",
                    "--pipeline-model-parallel-size",
                    "2",
                    "--global-batch-size",
                    "4"};
  const ArenaSizes whole = arenas_of(layout, full("uniform", "2"), 2);
  const ArenaSizes parts = arenas_of(layout, distributed(full("uniform", "2")), 2);
  EXPECT_EQ(whole.keep - parts.keep, 2 * kInput / 2);
}

TEST(Sent, AlongTheDataAxis) {
  const Args four{"--threads", "4", "--global-batch-size", "16"};
  const LayoutPlan plan = plan_of(four);
  const auto gradients = static_cast<double>(bytes_for(plan.shown.memory, "gradients"));
  // The number of values of the one loss, summed at the start of a step.
  constexpr double kCount = 2.0 * 3 / 4 * sizeof(double);
  EXPECT_DOUBLE_EQ(plan.shown.sent.data, 2.0 * 3 / 4 * gradients + kCount);
  // Whatever the number of micro-batches.
  EXPECT_DOUBLE_EQ(plan_of({"--threads", "4"}).shown.sent.data, plan.shown.sent.data);

  Args divided = four;
  divided.emplace_back("--use-distributed-optimizer");
  const LayoutPlan zero = plan_of(divided);
  const auto parameters = static_cast<double>(bytes_for(zero.shown.memory, "parameters"));
  const auto reduced = static_cast<double>(bytes_for(zero.shown.memory, "gradients"));
  EXPECT_DOUBLE_EQ(zero.shown.sent.data, 3.0 / 4 * (reduced + parameters) + kCount);
}

TEST(Sent, AlongThePipeline) {
  const Args three{"--threads",           "4", "--pipeline-model-parallel-size",       "4",
                   "--global-batch-size", "4", "--untie-embeddings-and-output-weights"};
  const LayoutPlan plan = plan_of(three);
  EXPECT_DOUBLE_EQ(plan.ranks[0].sent.pipeline, kMicros * kHidden);
  EXPECT_DOUBLE_EQ(plan.ranks[1].sent.pipeline, 2 * kMicros * kHidden);
  EXPECT_DOUBLE_EQ(plan.ranks[3].sent.pipeline, kMicros * kHidden);
  EXPECT_DOUBLE_EQ(plan.most_sent().pipeline, 2 * kMicros * kHidden);
  // A tied embedding: both ends sum its gradient.
  const LayoutPlan tied = plan_of(Args(three.begin(), three.end() - 1));
  EXPECT_DOUBLE_EQ(tied.ranks[0].sent.pipeline, kMicros * kHidden + 64 * kWidth * kFloat);
}

}  // namespace
}  // namespace bev
