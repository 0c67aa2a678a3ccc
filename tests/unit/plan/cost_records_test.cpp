// Records of dry-run steps: FLOP by the rule, bytes by group, stages and phases.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "config/parse/load.h"
#include "plan/dry_run.h"

namespace bev {
namespace {

using Flags = std::vector<std::string>;

Config cost_config(const Flags& more) {
  Flags flags{
      "--model.layers",       "4",  "--model.width",          "32", "--model.heads",    "4",
      "--model.vocab",        "64", "--model.vocab_multiple", "1",  "--device",         "cpu",
      "--train.micro_batch",  "2",  "--train.sequence",       "16", "--device.threads", "1",
      "--train.global_batch", "8"};
  flags.insert(flags.end(), more.begin(), more.end());
  return load(flags).config;
}

// The rule of docs/performance.md for GPT and Llama, in closed form.
double closed_form(const Config& config) {
  const ModelShape m = resolve_model(config);
  const double width = static_cast<double>(m.width);
  const double heads = static_cast<double>(m.heads * m.head_dim);
  const double kv = static_cast<double>(m.kv_heads * m.head_dim);
  const double mlp =
      width * static_cast<double>(m.ffn) * (is_gated(config.model.activation) ? 3 : 2);
  const double layers = static_cast<double>(m.layers);
  const double weights = layers * (2 * width * heads + 2 * width * kv + mlp) +
                         width * static_cast<double>(m.padded_vocab);
  return 6 * weights + 6 * layers * heads * static_cast<double>(config.train.sequence);
}

double flops_per_token(const Config& config) { return dry_run(config).model_flops_per_token; }

// Fails when a GEMM of the model is not counted, or the mask of attention is counted otherwise.
TEST(ModelFlops, EqualTheClosedForm) {
  const std::vector<Flags> models{
      {},
      {"--model.activation", "swiglu"},
      {"--model.kv_heads", "1", "--model.position", "rope"},
      {"--model.kv_heads", "2", "--model.head_dim", "24", "--model.ffn", "104"},
      {"--model.tied", "false"},
      {"--model.window", "5"},
      {"--model.window", "5", "--model.kv_heads", "2", "--model.activation", "geglu-tanh"},
      {"--train.sequence", "13", "--model.vocab", "61"},
      {"--model.vocab_multiple", "16", "--model.vocab", "61", "--parallel.tensor", "2",
       "--parallel.ranks", "2"},
      {"--model.kv_heads", "1", "--parallel.tensor", "4", "--parallel.ranks", "4"},
  };
  for (const Flags& model : models) {
    const Config config = cost_config(model);
    EXPECT_EQ(flops_per_token(config), closed_form(config)) << testing::PrintToString(model);
  }
  for (const char* preset : {"gpt2-124m", "gpt2-1558m", "gpt3-175b", "tinyllama-1.1b", "llama2-7b",
                             "llama2-70b", "llama3-8b"}) {
    const Config config = load(Flags{"--model.preset", preset, "--train.micro_batch", "1"}).config;
    EXPECT_EQ(flops_per_token(config), closed_form(config)) << preset;
  }
}

// Fails when work that is computed again counts as work of the model.
TEST(ModelFlops, LeaveRecomputationOut) {
  const Config plain = cost_config({});
  const Cost once = total_of(record_step(plain));
  EXPECT_EQ(once.model_flops, closed_form(plain) * 2 * 16);
  for (const Flags& recompute :
       {Flags{"--recompute.granularity", "full"},
        Flags{"--recompute.granularity", "full", "--recompute.method", "uniform",
              "--recompute.layers", "3"},
        Flags{"--recompute.granularity", "full", "--parallel.schedule", "zero-bubble"},
        Flags{"--recompute.granularity", "selective"}}) {
    const Cost again = total_of(record_step(cost_config(recompute)));
    EXPECT_GT(again.flops, once.flops);
    EXPECT_EQ(again.model_flops, once.model_flops) << testing::PrintToString(recompute);
  }
}

// What a recomputed block repeats: all but its last GEMM, whose result nobody reads.
TEST(ModelFlops, FlagsWhatIsComputedAgain) {
  const Config config = cost_config({"--recompute.granularity", "full"});
  double flops = 0;
  for (const OpCost& r : record_step(config)) {
    if (!r.recomputed) continue;
    flops += r.flops;
    EXPECT_EQ(r.phase, Phase::BackwardInput) << r.op;
  }
  const double tokens = 2 * 16, width = 32, pairs = 16 * 17 / 2;
  EXPECT_EQ(flops, 4 * (2 * tokens * 8 * width * width + 4 * 2 * pairs * width));
}

// Ranks divide the work of the model. Fails when a layout loses or repeats some of it.
TEST(ModelFlops, AddUpOverTheRanks) {
  for (const Flags& layout :
       {Flags{"--parallel.ranks", "4", "--parallel.tensor", "2", "--parallel.pipeline", "2"},
        Flags{"--parallel.ranks", "2", "--parallel.pipeline", "2", "--parallel.chunks", "2"},
        Flags{"--parallel.ranks", "4", "--parallel.pipeline", "4", "--parallel.schedule",
              "zero-bubble", "--recompute.granularity", "full"}}) {
    const Config config = cost_config(layout);
    double flops = 0;
    for (int rank = 0; rank < layout_of(config).world(); ++rank)
      flops += total_of(record_step(config, 2, rank)).model_flops;
    EXPECT_EQ(flops, closed_form(config) * 2 * 2 * 16) << testing::PrintToString(layout);
  }
}

double flops_of(const std::vector<OpCost>& records, Phase phase, int stage) {
  double flops = 0;
  for (const OpCost& r : records)
    if (r.phase == phase && r.stage == stage) flops += r.flops;
  return flops;
}

// Two chunks on each of two ranks: rank 1 has the stages 1 and 3, with one layer each, and the
// head. Fails when a record names another stage or phase.
TEST(CostRecords, NameStageAndPhase) {
  const Config config =
      cost_config({"--parallel.ranks", "2", "--parallel.pipeline", "2", "--parallel.chunks", "2"});
  const std::vector<OpCost> records = record_step(config, 2, 1);
  std::set<int> stages;
  bool updated = false;
  for (const OpCost& r : records) {
    stages.insert(r.stage);
    EXPECT_EQ(r.stage < 0, r.phase == Phase::Update) << r.op;
    if (r.op == "adamw") updated = r.stage < 0;
  }
  EXPECT_EQ(stages, (std::set<int>{-1, 1, 3}));
  EXPECT_TRUE(updated) << "the optimizer belongs to no stage";
  const double tokens = 2 * 2 * 16, width = 32, pairs = 4 * 16 * 17 / 2;
  const double layer = 2 * tokens * 12 * width * width, head = 2 * tokens * width * 64;
  const double scores = 4 * pairs * width;
  EXPECT_EQ(flops_of(records, Phase::Forward, 1), layer + scores);
  EXPECT_EQ(flops_of(records, Phase::BackwardInput, 1), layer + 2.5 * scores);
  EXPECT_EQ(flops_of(records, Phase::BackwardWeight, 1), layer);
  EXPECT_EQ(flops_of(records, Phase::Forward, 3), layer + head + scores);
  EXPECT_EQ(flops_of(records, Phase::BackwardInput, 3), layer + head + 2.5 * scores);
  EXPECT_EQ(flops_of(records, Phase::BackwardWeight, 3), layer + head);
  EXPECT_EQ(flops_of(records, Phase::Update, -1), 0);
}

// Postponed weight gradients are computed by instructions of their own.
TEST(CostRecords, NameThePhaseOfPostponedGradients) {
  const Flags layout{"--parallel.ranks", "2", "--parallel.pipeline", "2"};
  Flags postponed = layout;
  postponed.insert(postponed.end(), {"--parallel.schedule", "zero-bubble"});
  const std::vector<OpCost> a = record_step(cost_config(layout), 2);
  const std::vector<OpCost> b = record_step(cost_config(postponed), 2);
  for (const Phase phase : {Phase::Forward, Phase::BackwardInput, Phase::BackwardWeight})
    EXPECT_EQ(flops_of(a, phase, 0), flops_of(b, phase, 0));
}

// Fails when a collective is not recorded, or for another group.
TEST(CostRecords, NameTheGroupOfEachCollective) {
  const Config config =
      cost_config({"--parallel.ranks", "8", "--parallel.tensor", "2", "--parallel.pipeline", "2",
                   "--parallel.zero", "1", "--train.global_batch", "4"});
  const Plan plan = dry_run(config, {.rank = 0});
  const auto sent = [&, records = record_step(config)](int group) {
    double bytes = 0;
    for (const OpCost& r : records)
      if (r.group == group) bytes += r.bytes_sent;
    return bytes;
  };
  EXPECT_GT(plan.sent.data, 0);
  EXPECT_DOUBLE_EQ(sent(1 + static_cast<int>(Axis::Tensor)), plan.sent.tensor);
  EXPECT_DOUBLE_EQ(sent(1 + static_cast<int>(Axis::Data)), plan.sent.data);
  EXPECT_DOUBLE_EQ(sent(1 + static_cast<int>(Axis::Pipeline)), plan.sent.pipeline);
  EXPECT_DOUBLE_EQ(sent(0), plan.sent.scalars);
  EXPECT_DOUBLE_EQ(plan.step.bytes_sent, plan.sent.total());
}

// Fails when overlapped communication is recorded on the compute stream.
TEST(CostRecords, NameTheStream) {
  const std::vector<OpCost> records = record_step(cost_config(
      {"--parallel.ranks", "2", "--parallel.zero", "1", "--parallel.overlap_gradients", "true"}));
  const auto is_sum = [](const OpCost& r) { return r.op == "reduce_scatter"; };
  const auto found = std::find_if(records.begin(), records.end(), is_sum);
  ASSERT_NE(found, records.end());
  EXPECT_EQ(found->stream, 2);
  EXPECT_EQ(found->phase, Phase::BackwardInput);
  EXPECT_EQ(records.front().stream, 0);
}

// Fails when the input of a column-parallel layer is gathered on the compute stream in backward,
// where it should overlap with the GEMM of the input gradient.
TEST(CostRecords, NameTheStreamOfTheSecondGather) {
  const std::vector<OpCost> records = record_step(cost_config(
      {"--parallel.ranks", "2", "--parallel.tensor", "2", "--parallel.sequence", "true"}));
  int gathers = 0;
  for (const OpCost& r : records) {
    if (r.op != "all_gather" || r.phase != Phase::BackwardInput) continue;
    gathers += r.stream == 3 ? 1 : 0;
  }
  EXPECT_EQ(gathers, 2 * 4) << "two column-parallel layers in each of four blocks";
}

}  // namespace
}  // namespace bev
