// Saved under any layout, continued under any other: the same training in float64.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "checkpoint/checkpointed_run.h"
#include "comm/thread_communicator.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "support/layout_name.h"
#include "support/temporary_directory.h"
#include "train/run_checkpoints.h"
#include "verify/layout_run.h"

namespace bev::test {
namespace {

// Every axis, every kind of divided state, several stages of a rank; the first four among the quick
// tests.
const std::vector<std::string>& layouts() {
  static const std::vector<std::string> all{
      "tp2.sp",      "pp2.chunks2", "dp2.zero3",     "tp2.dp2.zero1",
      "dp1",         "dp4",         "tp4",           "pp4",
      "tp2.pp2.dp2", "dp4.zero2",   "pp2.dp2.zero1", "tp2.sp.pp2.dp2.zero3"};
  return all;
}

constexpr double kBound = 1e-12;

enum class Training : uint8_t { Gpt, Llama, Bert, BertInMegatronsOrder, T5 };

// Half of a training under one layout, and where all others find it.
class Halves {
 public:
  explicit Halves(Training training) : config_(config_of(training)) {
    run_checkpointed(first_part(under(config_, "dp1"), whole_ / "run", 0));
  }

  const Config& config() const { return config_; }

  // The undisturbed training on one rank.
  CheckpointReader whole() const { return CheckpointReader(place_of(whole_ / "run", 4)); }

  std::filesystem::path saved_under(const std::string& layout) {
    const std::filesystem::path folder = parts_ / layout;
    if (!std::filesystem::exists(folder))
      run_checkpointed(first_part(under(config_, layout), folder, 2));
    return folder;
  }

 private:
  Config config_of(Training training) const {
    switch (training) {
      case Training::Gpt: return divisible_gpt();
      case Training::Llama: return divisible_llama();
      case Training::Bert: return sentence_bert(data_.path(), SampleOrder::Arithmetic);
      case Training::T5: return sentence_t5(data_.path(), SampleOrder::Arithmetic);
      case Training::BertInMegatronsOrder: break;
    }
    return sentence_bert(data_.path(), SampleOrder::Megatron);
  }

  TemporaryDirectory data_, whole_, parts_;
  Config config_;
};

Halves& halves_of(Training training) {
  static std::map<Training, std::unique_ptr<Halves>> all;
  std::unique_ptr<Halves>& halves = all[training];
  if (!halves) halves = std::make_unique<Halves>(training);
  return *halves;
}

struct Pair {
  std::string from, to;
};

std::vector<Pair> pairs(size_t begin, size_t end, size_t quick) {
  std::vector<Pair> all;
  for (size_t from = begin; from < end; ++from)
    for (size_t to = begin; to < end; ++to)
      if (from >= quick || to >= quick) all.push_back({layouts()[from], layouts()[to]});
  return all;
}

std::string name_of_pair(const testing::TestParamInfo<Pair>& info) {
  return layout_name(info.param.from) + "_to_" + layout_name(info.param.to);
}

class LayoutPairs : public testing::TestWithParam<Pair> {};

void expect_continued(Training training, const Pair& pair) {
  Halves& halves = halves_of(training);
  const Config config = halves.config();
  const TemporaryDirectory folder;
  std::filesystem::copy(place_of(halves.saved_under(pair.from), 2), place_of(folder.path(), 2),
                        std::filesystem::copy_options::recursive);
  const RunOutcome outcome = run_checkpointed(second_part(under(config, pair.to), folder.path()));
  ASSERT_EQ(outcome.iterations.size(), 2u);
  const CheckpointReader continued(place_of(folder.path(), 4));
  const Worst worst = worst_difference(halves.whole(), continued, config);
  std::printf("worst difference %.2e, %s\n", worst.difference, worst.tensor.c_str());
  EXPECT_LT(worst.difference, kBound) << worst.tensor;
  EXPECT_EQ(continued.manifest().consumed_samples, halves.whole().manifest().consumed_samples);
  EXPECT_EQ(continued.manifest().scheduled_samples, halves.whole().manifest().scheduled_samples);
}

TEST_P(LayoutPairs, ContinueGpt) { expect_continued(Training::Gpt, GetParam()); }
TEST_P(LayoutPairs, ContinueLlama) { expect_continued(Training::Llama, GetParam()); }
TEST_P(LayoutPairs, ContinueBert) { expect_continued(Training::Bert, GetParam()); }
TEST_P(LayoutPairs, ContinueBertInMegatronsOrder) {
  expect_continued(Training::BertInMegatronsOrder, GetParam());
}
TEST_P(LayoutPairs, ContinueT5) { expect_continued(Training::T5, GetParam()); }

// Two iterations with shards of whole parameters, saved.
void save_whole_params(const Config& config) {
  const ModelOptions options{.shard_rule = [](Role) { return ShardRule::WholeParams; }};
  run_ranks(layout_of(config).world(), std::chrono::seconds(120), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_device(config.device);
    ProcessGroups groups(layout_of(config), world);
    const Plan plan = dry_run(config, {.rank = world.rank(), .model = options});
    TrainingState state(config, *device, groups, plan.arenas, options);
    state.initialize();
    DataLoader loader(
        std::make_shared<UnevenDataset>(config.model.vocab),
        DataLoader::shape_of(config, state.spec.batch, groups.coordinate(Axis::Data)));
    const LrSchedule schedule = lr_schedule_from(config, plan.batch.global_batch, plan.iterations);
    StepRunner stepper(state, schedule);
    stepper.step(loader.next());
    stepper.step(loader.next());
    RunCheckpoints checkpoints(state, {.folder = config.checkpoint.save,
                                       .config = config,
                                       .schedule = schedule,
                                       .config_text = "# none\n"});
    const int64_t samples = 2 * plan.batch.global_batch;
    checkpoints.save({.iteration = 2,
                      .consumed_samples = samples,
                      .data_position = samples,
                      .update = stepper.state()});
    EXPECT_TRUE(checkpoints.finish());
  });
}

// Fails when pieces of a checkpoint follow equal shards.
TEST(WholeParamCheckpoints, ContinueWithEqualShards) {
  Halves& halves = halves_of(Training::Gpt);
  for (const char* layout : {"dp2.zero1", "dp4.zero3", "tp2.dp2.zero2"}) {
    const TemporaryDirectory folder;
    save_whole_params(first_part(under(halves.config(), layout), folder.path(), 2));
    run_checkpointed(second_part(under(halves.config(), "dp2.zero2"), folder.path()));
    const CheckpointReader continued(place_of(folder.path(), 4));
    const Worst worst = worst_difference(halves.whole(), continued, halves.config());
    EXPECT_LT(worst.difference, kBound) << layout << ": " << worst.tensor;
  }
}

// What other programs read: with one tensor rank every weight is whole, in one file and under its
// name; so is what the optimizer keeps, unless ranks divide it.
TEST(PiecesOfLayouts, AreWholeWithOneTensorRank) {
  for (const char* layout : {"dp1", "dp4", "pp4", "pp2.chunks2", "dp2.zero1"}) {
    const TemporaryDirectory folder;
    run_checkpointed(first_part(under(divisible_llama(), layout), folder.path(), 1));
    const CheckpointReader stored(place_of(folder.path(), 1));
    for (const auto& [name, tensor] : stored.tensors()) {
      const bool is_divided = std::string(layout) == "dp2.zero1" && name != parameter_of(name);
      if (is_divided) continue;
      EXPECT_EQ(tensor.parts.size(), 1u) << layout << " " << name;
    }
  }
}

// Nobody writes what another has: the ranks that share the batch divide the work.
TEST(PiecesOfLayouts, AreDividedAmongRanksThatShareTheBatch) {
  const TemporaryDirectory folder;
  run_checkpointed(first_part(under(divisible_llama(), "dp4"), folder.path(), 1));
  const Manifest manifest = read_manifest(place_of(folder.path(), 1));
  uint64_t most = 0, all = 0;
  size_t files = 0;
  for (const CheckpointFile& file : manifest.files) {
    if (!file.holds_pieces || !file.name.starts_with("optimizer")) continue;
    ++files;
    all += file.bytes;
    most = std::max(most, file.bytes);
  }
  EXPECT_EQ(files, 4u);
  EXPECT_LT(most, all / 2);
}

INSTANTIATE_TEST_SUITE_P(Some, LayoutPairs, testing::ValuesIn(pairs(0, 4, 0)), name_of_pair);
INSTANTIATE_TEST_SUITE_P(Slow, LayoutPairs, testing::ValuesIn(pairs(0, 12, 4)), name_of_pair);

}  // namespace
}  // namespace bev::test
