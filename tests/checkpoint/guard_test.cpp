// What guards do, under several layouts: each event is found on every rank alike, named, and
// handled as the policy says; what follows is the training that never saw the bad samples. Every
// test names the fault that makes it fail.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "checkpoint/checkpointed_run.h"
#include "data/mock_dataset.h"
#include "support/same_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev::test {
namespace {

// Samples of tokens that follow each other and are soon learned, but one.
class MarkedSamples final : public Dataset {
 public:
  enum class Mark : uint8_t { NotFinite, Random };

  MarkedSamples(int64_t vocab, Mark mark, int64_t marked)
      : vocab_(vocab), mark_(mark), marked_(marked), random_(vocab, 7) {}

  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    random_.read(index, batch, at);
    if (index == marked_ && mark_ == Mark::NotFinite)
      batch.weight[static_cast<size_t>(at * batch.length + 1)] = NAN;
    if (index == marked_ && mark_ == Mark::Random) {
      std::fill_n(batch.weight.begin() + at * batch.length, batch.length, 50.0f);
      return;
    }
    for (int64_t i = 0; i < batch.length; ++i) {
      const auto place = static_cast<size_t>(at * batch.length + i);
      batch.tokens[place] = static_cast<int32_t>((index + i) % vocab_);
      batch.targets[place] = static_cast<int32_t>((index + i + 1) % vocab_);
    }
  }
  std::string describe(int64_t index) const override { return format("sample number {}", index); }

 private:
  int64_t vocab_;
  Mark mark_;
  int64_t marked_;
  MockDataset random_;
};

using Mark = MarkedSamples::Mark;

template <class Param>
std::string name_of_layout(const testing::TestParamInfo<Param>& info) {
  std::string name = info.param.layout;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

constexpr int64_t kIterations = 40, kBad = 31;   // the iteration
constexpr int64_t kMarked = 8 * (kBad - 1) + 3;  // the sample
constexpr int64_t kFirst = 8 * (kBad - 1), kLast = kFirst + 7;

Config guarded(const std::string& layout, const std::filesystem::path& folder) {
  Config c = under(divisible_gpt(), layout);
  c.model.hidden_dropout = c.model.attention_dropout = 0.02;
  c.train.iterations = kIterations;
  c.optim.lr = 3e-2;
  c.optim.decay = LrDecay::Constant;
  c.checkpoint.save = folder.string();
  c.checkpoint.interval = 7;
  c.guard.warmup = 20;
  c.guard.window = 8;
  c.guard.loss_deviations = 3;
  c.guard.norm_spike = OnSpike::Ignore;
  return c;
}

std::shared_ptr<const Dataset> marked(const Config& c, Mark mark) {
  return std::make_shared<MarkedSamples>(c.model.vocab, mark, kMarked);
}

// The end of a training that was told beforehand to leave these samples out.
void expect_as_without(const Config& disturbed, Mark mark, const std::string& left_out) {
  const TemporaryDirectory folder;
  Config c = disturbed;
  c.checkpoint.save = folder.path().string();
  c.data.skip = left_out;
  const RunOutcome plain = run_checkpointed(c, marked(c, mark));
  EXPECT_TRUE(plain.events.empty()) << plain.events[0].text;
  const CheckpointReader a(place_of(disturbed.checkpoint.save, kIterations)),
      b(place_of(folder.path(), kIterations));
  EXPECT_TRUE(same_bits(a, b));
  EXPECT_TRUE(same_position(a.manifest(), b.manifest()));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// rank: that computes the marked sample.
struct Case {
  const char* layout;
  int rank;
};

class Guards : public testing::TestWithParam<Case> {};

// Fails when the bad step is applied or missed, the checkpoint is not the last before it, samples
// are left out that should not be, or counts go on from the wrong place.
TEST_P(Guards, RollBackAndLeaveOutASpike) {
  const TemporaryDirectory folder;
  Config c = guarded(GetParam().layout, folder.path());
  c.guard.loss_spike = OnSpike::Rollback;
  const RunOutcome run = run_checkpointed(c, marked(c, Mark::Random));
  ASSERT_EQ(run.events.size(), 1u);
  const GuardEvent& event = run.events[0];
  EXPECT_EQ(event.iteration, kBad);
  EXPECT_EQ(event.action, GuardAction::RolledBack);
  EXPECT_EQ(event.samples, (SampleRange{kFirst, kLast + 1}));
  EXPECT_TRUE(has(event.text, format("the loss of iteration {} is a spike", kBad))) << event.text;
  EXPECT_TRUE(has(event.text, format("sample number {}", kMarked))) << event.text;
  EXPECT_TRUE(has(event.text, "the largest part of the gradient: ")) << event.text;
  EXPECT_TRUE(has(event.text, "rolled back to iteration 28")) << event.text;
  if (c.parallel.ranks > 1 && GetParam().rank >= 0) {
    EXPECT_TRUE(has(event.text, format("rank {}, ", GetParam().rank))) << event.text;
  }
  EXPECT_EQ(run.summary.ending, ExitReason::Complete);
  EXPECT_EQ(run.summary.rollbacks, 1);
  const Manifest manifest = read_manifest(place_of(folder.path(), kIterations));
  EXPECT_EQ(manifest.consumed_samples, 8 * kIterations);
  EXPECT_EQ(manifest.scheduled_samples, 8 * kIterations);
  EXPECT_EQ(manifest.data_position, 8 * kIterations + 8);
  EXPECT_EQ(manifest.skipped, (std::vector<SampleRange>{{kFirst, kLast + 1}}));
  expect_as_without(c, Mark::Random, format("{}-{}", kFirst, kLast));
}

TEST_P(Guards, RollBackFromWhatIsNotFinite) {
  const TemporaryDirectory folder;
  Config c = guarded(GetParam().layout, folder.path());
  c.guard.nonfinite = OnNonFinite::Rollback;
  c.guard.skip_before = 1;
  c.guard.skip_after = 2;
  const RunOutcome run = run_checkpointed(c, marked(c, Mark::NotFinite));
  ASSERT_EQ(run.events.size(), 1u);
  const std::string& text = run.events[0].text;
  EXPECT_EQ(run.events[0].iteration, kBad);
  EXPECT_TRUE(has(text, "1 of its 8 samples have a loss that is not finite")) << text;
  EXPECT_TRUE(has(text, format("sample number {}", kMarked))) << text;
  EXPECT_TRUE(has(text, "gradients that are not finite: ")) << text;
  EXPECT_EQ(run.summary.ending, ExitReason::Complete);
  expect_as_without(c, Mark::NotFinite, format("{}-{}", kFirst - 8, kLast + 16));
}

// Fails when the update is applied all the same, or the learning rate moves with a step that was
// skipped.
TEST_P(Guards, SkipTheUpdateOfASpike) {
  const TemporaryDirectory folder;
  Config c = guarded(GetParam().layout, folder.path());
  c.guard.loss_spike = OnSpike::Skip;
  const RunOutcome run = run_checkpointed(c, marked(c, Mark::Random));
  ASSERT_EQ(run.events.size(), 1u);
  EXPECT_EQ(run.events[0].action, GuardAction::Skipped);
  EXPECT_EQ(run.summary.skipped, 1);
  EXPECT_FALSE(run.iterations[kBad - 1].result.applied);
  const Manifest manifest = read_manifest(place_of(folder.path(), kIterations));
  EXPECT_EQ(manifest.consumed_samples, 8 * kIterations);
  EXPECT_EQ(manifest.scheduled_samples, 8 * (kIterations - 1));
  EXPECT_EQ(manifest.data_position, 8 * kIterations);
}

// What the guard has found does not change the training. Fails when looking for the culprit leaves
// something behind.
TEST_P(Guards, LogASpikeAndGoOn) {
  const TemporaryDirectory watched, ignored;
  Config c = guarded(GetParam().layout, watched.path());
  c.guard.loss_spike = OnSpike::Log;
  const RunOutcome run = run_checkpointed(c, marked(c, Mark::Random));
  ASSERT_FALSE(run.events.empty());
  EXPECT_EQ(run.events[0].iteration, kBad);
  EXPECT_EQ(run.events[0].action, GuardAction::Logged);
  c.guard.loss_spike = OnSpike::Ignore;
  c.checkpoint.save = ignored.path().string();
  EXPECT_TRUE(run_checkpointed(c, marked(c, Mark::Random)).events.empty());
  EXPECT_TRUE(same_bits(CheckpointReader(place_of(watched.path(), kIterations)),
                        CheckpointReader(place_of(ignored.path(), kIterations))));
}

// A run that a guard stopped has saved the state before the bad step. Fails when the step counts,
// or when what goes on from there is another training.
TEST_P(Guards, StopAndContinue) {
  const TemporaryDirectory stopped, whole;
  Config c = guarded(GetParam().layout, stopped.path());
  c.guard.loss_spike = OnSpike::Stop;
  const RunOutcome run = run_checkpointed(c, marked(c, Mark::Random));
  EXPECT_EQ(run.summary.ending, ExitReason::Spike);
  EXPECT_EQ(run.summary.iterations, kBad - 1);
  EXPECT_TRUE(std::filesystem::exists(place_of(stopped.path(), kBad - 1)));
  Config on = c;
  on.checkpoint.load = c.checkpoint.save;
  on.guard.loss_spike = OnSpike::Ignore;
  EXPECT_EQ(run_checkpointed(on, marked(c, Mark::Random)).summary.ending, ExitReason::Complete);
  Config plain = c;
  plain.checkpoint.save = whole.path().string();
  plain.guard.loss_spike = OnSpike::Ignore;
  run_checkpointed(plain, marked(c, Mark::Random));
  EXPECT_TRUE(same_bits(CheckpointReader(place_of(stopped.path(), kIterations)),
                        CheckpointReader(place_of(whole.path(), kIterations))));
}

// Rolled back, saved, ended, continued. Fails when the samples that were left out are not part of
// the checkpoint.
TEST_P(Guards, RollBackEndAndContinue) {
  for (const int64_t until : {30, 33, 36}) {
    const TemporaryDirectory folder;
    Config c = guarded(GetParam().layout, folder.path());
    c.guard.loss_spike = OnSpike::Rollback;
    c.guard.skip_before = 1;
    Config first = c;
    first.train.exit_interval = until;
    run_checkpointed(first, marked(c, Mark::Random));
    Config second = c;
    second.checkpoint.load = c.checkpoint.save;
    EXPECT_EQ(run_checkpointed(second, marked(c, Mark::Random)).summary.ending,
              ExitReason::Complete);
    // What is in the checkpoint of iteration 30 cannot be left out any more.
    expect_as_without(c, Mark::Random, format("{}-{}", until == 30 ? kFirst : kFirst - 8, kLast));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Guards,
                         testing::Values(Case{"tp1", 0}, Case{"dp2.zero1", 1}, Case{"tp2.dp2", 2},
                                         Case{"pp2.dp2", 1}),
                         name_of_layout<Case>);

// Without a checkpoint a rollback begins again. Fails when the optimizer remembers.
TEST(Rollback, BeginsAgainBeforeTheFirstCheckpoint) {
  const TemporaryDirectory folder;
  Config c = guarded("dp2", folder.path());
  c.checkpoint.interval = 100;
  c.guard.loss_spike = OnSpike::Rollback;
  const RunOutcome run = run_checkpointed(c, marked(c, Mark::Random));
  ASSERT_EQ(run.events.size(), 1u);
  EXPECT_TRUE(has(run.events[0].text, "rolled back to iteration 0")) << run.events[0].text;
  expect_as_without(c, Mark::Random, format("{}-{}", kFirst, kLast));
}

// Every sample from the marked one on is bad: the weights, not the data, may be the reason.
class BadFrom final : public Dataset {
 public:
  explicit BadFrom(std::shared_ptr<const Dataset> good) : good_(std::move(good)) {}
  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    good_->read(index, batch, at);
    if (index >= kMarked) batch.weight[static_cast<size_t>(at * batch.length)] = NAN;
  }
  std::string describe(int64_t index) const override { return good_->describe(index); }

 private:
  std::shared_ptr<const Dataset> good_;
};

// Fails when a run rolls back for ever.
TEST(Rollback, GivesUp) {
  const TemporaryDirectory folder;
  Config c = guarded("tp1", folder.path());
  c.guard.nonfinite = OnNonFinite::Rollback;
  c.guard.rollbacks = 2;
  const RunOutcome run = run_checkpointed(c, std::make_shared<BadFrom>(marked(c, Mark::Random)));
  EXPECT_EQ(run.summary.ending, ExitReason::NonFinite);
  EXPECT_EQ(run.summary.rollbacks, 2);
  EXPECT_TRUE(has(run.summary.reason, "2 rollbacks since the last checkpoint did not help"))
      << run.summary.reason;
  EXPECT_EQ(run.summary.iterations, kBad - 1);
}

// Flips a bit of a weight on one rank after an iteration.
Disturbance flip(int on_rank, int64_t after, bool once) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  return [=](int rank, const Progress& p, TrainingState& assembly) {
    if (rank != on_rank || p.iteration != after || (once && done->exchange(true))) return;
    Param* param = assembly.params.find("final_norm.weight");
    if (param == nullptr) param = assembly.params.all().front();
    double value = 0;
    assembly.device.download(param->value.data, &value, sizeof value);
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits ^= uint64_t{1} << 40;
    std::memcpy(&value, &bits, sizeof bits);
    assembly.device.upload(&value, param->value.data, sizeof value);
  };
}

struct FlipCase {
  const char* layout;
  int rank;
  const char* words;
};

class Corruption : public testing::TestWithParam<FlipCase> {};

// Fails when copies are not compared, the wrong rank is named, or corrupt weights are saved.
TEST_P(Corruption, IsNamedAndStopsTheRun) {
  const auto [layout, rank, words] = GetParam();
  const TemporaryDirectory folder;
  Config c = guarded(layout, folder.path());
  c.guard.loss_spike = OnSpike::Ignore;
  c.guard.hash_interval = 5;
  const RunOutcome run = run_checkpointed(c, marked(c, Mark::Random), flip(rank, 12, false));
  EXPECT_EQ(run.summary.ending, ExitReason::Corruption);
  ASSERT_EQ(run.events.size(), 1u);
  // A checkpoint is due at 14.
  EXPECT_EQ(run.events[0].iteration, 14);
  EXPECT_TRUE(has(run.events[0].text, words)) << run.events[0].text;
  EXPECT_TRUE(has(run.events[0].text, "after iteration 14, with 112 samples consumed"))
      << run.events[0].text;
  EXPECT_FALSE(std::filesystem::exists(place_of(folder.path(), 14)));
  EXPECT_TRUE(std::filesystem::exists(place_of(folder.path(), 7)));
}

// Fails when rolling back does not heal the rank, or loses samples.
TEST_P(Corruption, IsHealedByRollingBack) {
  const auto [layout, rank, words] = GetParam();
  const TemporaryDirectory folder, plain;
  Config c = guarded(layout, folder.path());
  c.guard.loss_spike = OnSpike::Ignore;
  c.guard.hash_interval = 5;
  c.guard.corruption = OnCorruption::Rollback;
  const RunOutcome run = run_checkpointed(c, marked(c, Mark::Random), flip(rank, 12, true));
  EXPECT_EQ(run.summary.ending, ExitReason::Complete);
  EXPECT_EQ(run.summary.rollbacks, 1);
  c.checkpoint.save = plain.path().string();
  EXPECT_TRUE(run_checkpointed(c, marked(c, Mark::Random)).events.empty());
  const CheckpointReader a(place_of(folder.path(), kIterations)),
      b(place_of(plain.path(), kIterations));
  EXPECT_TRUE(same_bits(a, b));
  EXPECT_TRUE(same_position(a.manifest(), b.manifest()));
}

INSTANTIATE_TEST_SUITE_P(
    Of, Corruption,
    testing::Values(FlipCase{"dp4", 2, "of rank 2 differs from that of ranks 0, 1, 3"},

                    FlipCase{"tp4", 1, "of rank 1 differs from that of ranks 0, 2, 3"},
                    FlipCase{"pp2.dp2", 3, "is not the same on ranks 2, 3"}),
    name_of_layout<FlipCase>);

}  // namespace
}  // namespace bev::test
