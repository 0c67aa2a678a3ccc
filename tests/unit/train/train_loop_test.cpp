#include "train/train_loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <set>

#include "base/json.h"
#include "data/mock_dataset.h"
#include "support/small_run.h"
#include "support/tiny_models.h"

namespace bev {
namespace {

constexpr int64_t kVocab = 29;
constexpr int64_t kNever = INT64_MAX;

// Made-up samples, some of which are bad: from `unreadable` on reading fails, and the loss of
// `poisoned` is not a number.
class Fussy final : public Dataset {
 public:
  explicit Fussy(int64_t unreadable = kNever, int64_t poisoned = -1)
      : good_(kVocab, 7), unreadable_(unreadable), poisoned_(poisoned) {}

  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    if (index >= unreadable_) throw Error(ErrorKind::Data, "no sample " + std::to_string(index));
    good_.read(index, batch, at);
    if (index == poisoned_) batch.weight[static_cast<size_t>(at * batch.length)] = NAN;
  }
  std::string describe(int64_t index) const override {
    return "sample number " + std::to_string(index);
  }

 private:
  MockDataset good_;
  int64_t unreadable_, poisoned_;
};

class Counting final : public Dataset {
 public:
  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    ++reads;
    good_.read(index, batch, at);
  }
  std::string describe(int64_t index) const override { return good_.describe(index); }
  mutable int64_t reads = 0;

 private:
  MockDataset good_{kVocab, 7};
};

// A log that keeps everything.
struct Seen final : public TrainLog {
  std::vector<Progress> iterations;
  std::vector<Validation> validations;
  std::vector<std::string> traces;
  std::vector<GuardEvent> events;
  struct Acknowledged {
    RunRequests requests;
    int64_t iteration;
  };
  std::vector<Acknowledged> requests;

  void iteration(const Progress& p) override { iterations.push_back(p); }
  void validation(const Validation& v) override { validations.push_back(v); }
  void event(const GuardEvent& e) override { events.push_back(e); }
  void acknowledged(const RunRequests& r, int64_t at) override { requests.push_back({r, at}); }
  void trace(const std::string& json) override { traces.push_back(json); }
};

// Checkpoints on request only, of which nothing but the iteration is kept.
struct SavedIterations final : public Checkpointing {
  std::vector<int64_t> iterations;

  bool is_due(int64_t) const override { return false; }
  void save(const RunPosition& position) override { iterations.push_back(position.iteration); }
  void poll() override {}
  bool finish() override { return true; }
  RunPosition roll_back(int64_t) override { throw Error(ErrorKind::Internal, "no rollback"); }
};

// A training loop of a tiny model, with its log.
class TrainerRun {
 public:
  explicit TrainerRun(const Config& c)
      : config_(c),
        plan_(dry_run(config_)),
        device_(make_device(config_.device.kind, 1)),
        assembly(config_, *device_, plan_.arenas) {
    assembly.initialize();
    data.train = std::make_shared<Fussy>();
  }

  TrainSummary run(const std::function<bool(const Seen&)>& stop = [](const Seen&) {
    return false;
  }) {
    return run_with([&] { return RunRequests{.signal = stop(seen) ? SIGTERM : 0}; });
  }
  TrainSummary run_with(const std::function<RunRequests()>& poll_requests,
                        Checkpointing* checkpoints = nullptr) {
    return TrainLoop(assembly, data, {}, seen, checkpoints, poll_requests).run();
  }
  TrainSummary run_from(const RunPosition& position) {
    return TrainLoop(assembly, data, {.position = position}, seen).run();
  }

 private:
  const Config config_;
  const Plan plan_;
  std::unique_ptr<Device> device_;

 public:
  TrainingState assembly;
  TrainingData data;
  Seen seen;
};

Config tiny(int64_t iterations) {
  Config c = test::tiny_gpt();
  c.train.iterations = iterations;
  c.eval.interval = 0;
  return c;
}

// The weights after the steps of a list, each of which is the number of its first sample.
void expect_weights_after(const std::vector<int64_t>& steps, TrainingState& trained) {
  test::SmallRun by_hand(trained.config);
  const Fussy samples;
  for (const int64_t first : steps) {
    std::vector<HostBatch> batches(2);
    int64_t sample = first;
    for (HostBatch& batch : batches) {
      batch.resize(2, 7, false);
      for (int64_t at = 0; at < 2; ++at) samples.read(sample++, batch, at);
    }
    by_hand.stepper.step(batches);
  }
  EXPECT_TRUE(test::same_bits(trained.params, by_hand.assembly.params, &Param::value));
}

TEST(TrainLoop, StepsThroughTheSamples) {
  TrainerRun run(tiny(3));
  const TrainSummary summary = run.run();
  EXPECT_EQ(summary.ending, ExitReason::Complete);
  EXPECT_EQ(summary.iterations, 3);
  EXPECT_EQ(summary.applied, 3);
  EXPECT_EQ(summary.skipped, 0);
  ASSERT_EQ(run.seen.iterations.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    const Progress& p = run.seen.iterations[static_cast<size_t>(i)];
    EXPECT_EQ(p.iteration, i + 1);
    EXPECT_EQ(p.iterations, 3);
    EXPECT_EQ(p.samples, 4 * (i + 1));
    EXPECT_EQ(p.batch, 4);
    EXPECT_TRUE(p.result.applied);
    EXPECT_GT(p.tokens_per_second, 0);
  }
  EXPECT_EQ(summary.first_loss, run.seen.iterations.front().result.loss);
  EXPECT_EQ(summary.last_loss, run.seen.iterations.back().result.loss);
  EXPECT_FALSE(summary.valid_loss);
  EXPECT_TRUE(run.seen.validations.empty());
  expect_weights_after({0, 4, 8}, run.assembly);
}

TEST(TrainLoop, ValidatesAtTheRightIterations) {
  for (const auto& [iterations, expected] :
       {std::pair{5, std::vector<int64_t>{2, 4, 5, 5}}, {4, std::vector<int64_t>{2, 4}}}) {
    Config c = tiny(iterations);
    c.eval.interval = 2;
    c.eval.iterations = 3;
    TrainerRun run(c);
    run.data.valid = {std::make_shared<Fussy>(), 100};
    const bool with_test = iterations == 5;
    if (with_test) run.data.test = {std::make_shared<Fussy>(), 5};
    const TrainSummary summary = run.run();
    std::vector<int64_t> at;
    for (const Validation& v : run.seen.validations) at.push_back(v.iteration);
    EXPECT_EQ(at, expected);
    for (size_t i = 0; i < at.size(); ++i) {
      const Validation& v = run.seen.validations[i];
      EXPECT_EQ(v.at_end, v.iteration == iterations);
      EXPECT_EQ(v.split, with_test && i == 3 ? "test" : "validation");
      EXPECT_EQ(v.samples, v.split == "test" ? 5 : 12);  // as far as there is text
      EXPECT_TRUE(std::isfinite(v.loss));
    }
    EXPECT_EQ(summary.valid_loss, run.seen.validations[with_test ? 2 : at.size() - 1].loss);
    EXPECT_EQ(summary.test_loss.has_value(), with_test);
  }
}

TEST(TrainLoop, ValidationChangesNothing) {
  Config c = tiny(4);
  TrainerRun plain(c);
  plain.run();
  c.eval.interval = 1;
  TrainerRun validated(c);
  validated.data.valid = {std::make_shared<Fussy>(), 7};
  validated.run();
  EXPECT_EQ(validated.seen.validations.size(), 4u);
  EXPECT_TRUE(test::same_bits(plain.assembly.params, validated.assembly.params, &Param::value));
}

TEST(TrainLoop, NoValidationWhenNoneIsWanted) {
  Config c = tiny(2);
  c.eval.interval = 1;
  c.eval.iterations = 0;
  TrainerRun run(c);
  run.data.valid = {std::make_shared<Fussy>(), 7};
  EXPECT_FALSE(run.run().valid_loss);
  EXPECT_TRUE(run.seen.validations.empty());
}

TEST(TrainLoop, EndsAtTheInterval) {
  Config c = tiny(10);
  c.train.exit_interval = 3;
  TrainerRun run(c);
  run.data.valid = {std::make_shared<Fussy>(), 7};
  const TrainSummary summary = run.run();
  EXPECT_EQ(summary.ending, ExitReason::Interval);
  EXPECT_EQ(summary.iterations, 3);
  EXPECT_TRUE(run.seen.validations.empty());  // the training is not complete
  expect_weights_after({0, 4, 8}, run.assembly);
  c.train.iterations = 3;
  EXPECT_EQ(TrainerRun(c).run().ending, ExitReason::Complete);
}

// Fails when the iterations of earlier runs count, or those of this one do not.
TEST(TrainLoop, EndsAfterSoManyOfItsOwn) {
  Config c = tiny(10);
  c.train.exit_after = 2;
  TrainerRun run(c);
  EXPECT_EQ(run.run().ending, ExitReason::After);
  EXPECT_EQ(run.seen.iterations.back().iteration, 2);
  RunPosition later{.iteration = 5, .consumed_samples = 20, .data_position = 20};
  TrainerRun second(c);
  EXPECT_EQ(second.run_from(later).iterations, 7);
}

// Fails when samples that were left out count as consumed.
TEST(TrainLoop, EndsAfterSoManySamples) {
  Config c = tiny(10);
  c.train.exit_samples = 9;
  c.data.skip = "3-6";
  TrainerRun run(c);
  const TrainSummary summary = run.run();
  EXPECT_EQ(summary.ending, ExitReason::Samples);
  EXPECT_EQ(summary.iterations, 3);
}

// Fails when every further start trains one more iteration.
TEST(TrainLoop, EndsAtOnceWithEnoughSamples) {
  Config c = tiny(10);
  c.train.exit_samples = 8;
  TrainerRun run(c);
  const TrainSummary summary =
      run.run_from({.iteration = 2, .consumed_samples = 8, .data_position = 8});
  EXPECT_EQ(summary.ending, ExitReason::Samples);
  EXPECT_EQ(summary.ran, 0);
}

// A file `stop` that is there when an interval ends the run, and one that comes while the last
// validation runs. Fails when it stays for the next run.
TEST(TrainLoop, TakesAWishToStopInAnyCase) {
  for (const bool at_end : {false, true}) {
    Config c = tiny(3);
    c.train.exit_interval = at_end ? 0 : 2;
    TrainerRun run(c);
    run.run_with([&] {
      return RunRequests{.stop = run.seen.requests.empty() &&
                                 run.seen.iterations.size() >= (at_end ? 3u : 2u)};
    });
    ASSERT_EQ(run.seen.requests.size(), 1u) << at_end;
    EXPECT_TRUE(run.seen.requests[0].requests.stop) << at_end;
  }
}

// Fails when what a checkpoint says about samples that guards left out is not heeded.
TEST(TrainLoop, LeavesOutWhatGuardsDid) {
  TrainerRun run(tiny(2));
  run.run_from({.iteration = 1,
                .consumed_samples = 4,
                .data_position = 4,
                .skipped = SampleRanges({{4, 8}})});
  expect_weights_after({8}, run.assembly);
}

TEST(TrainLoop, LeavesSamplesOut) {
  Config c = tiny(2);
  c.data.skip = "4-7";
  TrainerRun run(c);
  run.run();
  EXPECT_EQ(run.seen.iterations.back().samples, 8);
  expect_weights_after({0, 8}, run.assembly);
}

// Fails when something is trained, or nothing is validated.
TEST(TrainLoop, OnlyValidatesWhenToldSo) {
  Config c = tiny(10);
  c.train.skip_train = true;
  TrainerRun run(c);
  run.data.valid = {std::make_shared<Fussy>(), 7};
  run.data.test = {std::make_shared<Fussy>(), 7};
  const TrainSummary summary = run.run();
  EXPECT_EQ(summary.ran, 0);
  EXPECT_EQ(summary.ending, ExitReason::Evaluated);
  EXPECT_EQ(run.seen.validations.size(), 2u);
  EXPECT_TRUE(summary.test_loss);
  expect_weights_after({}, run.assembly);
}

// Fails when a validation that takes longer than whoever asks for the end waits is not given up, or
// its half counts.
TEST(TrainLoop, GivesUpAValidationWhenAsked) {
  Config c = tiny(10);
  c.eval.interval = 2;
  c.eval.iterations = 1000;
  TrainerRun run(c);
  auto counted = std::make_shared<Counting>();
  run.data.valid = {counted, 100000};
  const TrainSummary summary = run.run([&](const Seen&) { return counted->reads > 20; });
  EXPECT_EQ(summary.ending, ExitReason::Signal);
  EXPECT_EQ(summary.iterations, 2);
  EXPECT_TRUE(run.seen.validations.empty());
  EXPECT_FALSE(summary.valid_loss);
  EXPECT_LT(counted->reads, 40);
}

TEST(TrainLoop, EndsBeforeTheFirstStepWhenAsked) {
  TrainerRun run(tiny(10));
  const TrainSummary summary = run.run([](const Seen&) { return true; });
  EXPECT_EQ(summary.ending, ExitReason::Signal);
  EXPECT_EQ(summary.ran, 0);
  expect_weights_after({}, run.assembly);
}

// Fails when a request is not acknowledged at the next step, or acknowledged twice; when the rate
// changes before it was asked for, or the weights after it are not those of another rate.
TEST(TrainLoop, GrantsWishes) {
  Config c = tiny(6);
  c.eval.iterations = 1;
  TrainerRun run(c);
  run.data.valid = {std::make_shared<Fussy>(), 7};
  SavedIterations saved;
  const auto requests = [&] {
    RunRequests w;
    const size_t done = run.seen.iterations.size(), acknowledged = run.seen.requests.size();
    if (acknowledged == 0 && done == 2) w.evaluate = w.save = true;
    if (acknowledged == 1 && done == 3) w.rate = 0.5;
    if (acknowledged == 2 && done == 5) w.stop = true;
    return w;
  };
  const TrainSummary summary = run.run_with(requests, &saved);
  EXPECT_EQ(summary.ending, ExitReason::Request);
  EXPECT_EQ(summary.iterations, 5);
  std::vector<int64_t> acknowledged;
  for (const Seen::Acknowledged& a : run.seen.requests) acknowledged.push_back(a.iteration);
  EXPECT_EQ(acknowledged, (std::vector<int64_t>{2, 3, 5}));
  EXPECT_EQ(saved.iterations, (std::vector<int64_t>{2, 5}));
  ASSERT_EQ(run.seen.validations.size(), 1u);
  EXPECT_EQ(run.seen.validations[0].iteration, 2);
  TrainerRun plain(c);
  plain.run();
  for (size_t i = 0; i < 5; ++i)
    EXPECT_DOUBLE_EQ(run.seen.iterations[i].result.lr,
                     plain.seen.iterations[i].result.lr * (i < 3 ? 1 : 0.5))
        << i;
  EXPECT_EQ(run.seen.iterations[3].result.loss, plain.seen.iterations[3].result.loss);
  EXPECT_NE(run.seen.iterations[4].result.loss, plain.seen.iterations[4].result.loss);
}

TEST(TrainLoop, EndsAfterTheTime) {
  Config c = tiny(10);
  c.train.exit_minutes = 1e-9;
  const TrainSummary summary = TrainerRun(c).run();
  EXPECT_EQ(summary.ending, ExitReason::Duration);
  EXPECT_EQ(summary.iterations, 1);
  c.train.exit_minutes = 60;
  EXPECT_EQ(TrainerRun(c).run().ending, ExitReason::Complete);
}

// Fails when every iteration is traced, or none, or an op's time ends before it begins.
TEST(TrainLoop, TracesOneIteration) {
  Config c = tiny(5);
  c.log.trace = "trace.json";
  c.log.trace_iteration = 2;
  TrainerRun run(c);
  run.run();
  ASSERT_EQ(run.seen.traces.size(), 1u);
  const Json spans = Json::parse(run.seen.traces[0]);
  std::set<std::string> ops;
  for (const Json& span : spans) {
    if (span.at("ph") != "X") continue;  // the name of a stream
    ops.insert(span.at("name").get<std::string>());
    EXPECT_GE(span.at("ts").get<double>(), 0.0);
    EXPECT_GE(span.at("dur").get<double>(), 0.0);
  }
  for (const char* op : {"matmul", "attention", "attention_backward", "adamw", "decide_update"})
    EXPECT_TRUE(ops.contains(op)) << op;
}

TEST(TrainLoop, EndsWhenAsked) {
  TrainerRun run(tiny(10));
  const TrainSummary summary = run.run([](const Seen& s) { return s.iterations.size() == 2; });
  EXPECT_EQ(summary.ending, ExitReason::Signal);
  EXPECT_EQ(summary.signal, SIGTERM);
  EXPECT_EQ(summary.iterations, 2);
  EXPECT_EQ(summary.applied, 2);
  expect_weights_after({0, 4}, run.assembly);
}

TEST(TrainLoop, NonFiniteStopsWithTheWeightsOfTheLastUpdate) {
  TrainerRun run(tiny(10));
  run.data.train = std::make_shared<Fussy>(kNever, 9);  // the second sample of iteration 3
  const TrainSummary summary = run.run();
  EXPECT_EQ(summary.ending, ExitReason::NonFinite);
  EXPECT_EQ(summary.iterations, 2);  // that count
  EXPECT_EQ(summary.applied, 2);
  EXPECT_EQ(summary.skipped, 1);
  for (const char* words :
       {"the loss of iteration 3 is not finite; its samples are 8 to 11",
        "1 of its 4 samples have a loss that is not finite", "gradients that are not finite: "})
    EXPECT_NE(summary.reason.find(words), std::string::npos) << summary.reason;
  ASSERT_EQ(run.seen.events.size(), 1u);
  EXPECT_EQ(run.seen.events[0].action, GuardAction::Stopped);
  EXPECT_EQ(run.seen.events[0].samples, (SampleRange{8, 12}));
  EXPECT_NE(summary.reason.find("sample number 9"), std::string::npos) << summary.reason;
  EXPECT_EQ(summary.reason.find("sample number 8"), std::string::npos) << summary.reason;
  expect_weights_after({0, 4}, run.assembly);
}

TEST(TrainLoop, NonFiniteIsSkippedWhenAskedTo) {
  Config c = tiny(4);
  c.guard.nonfinite = OnNonFinite::Skip;
  TrainerRun run(c);
  run.data.train = std::make_shared<Fussy>(kNever, 5);
  const TrainSummary summary = run.run();
  EXPECT_EQ(summary.ending, ExitReason::Complete);
  EXPECT_EQ(summary.iterations, 4);
  EXPECT_EQ(summary.applied, 3);
  EXPECT_EQ(summary.skipped, 1);
  EXPECT_FALSE(run.seen.iterations[1].result.applied);
  EXPECT_TRUE(std::isfinite(summary.last_loss));
  expect_weights_after({0, 8, 12}, run.assembly);
}

TEST(TrainLoop, UnreadableSamplesEndTheRun) {
  TrainerRun run(tiny(10));
  run.data.train = std::make_shared<Fussy>(10);
  const TrainSummary summary = run.run();
  EXPECT_EQ(summary.ending, ExitReason::BadData);
  EXPECT_EQ(summary.reason, "no sample 10");
  EXPECT_EQ(summary.iterations, 2);
  expect_weights_after({0, 4}, run.assembly);
}

TEST(TrainLoop, UnreadableSamplesAtOnce) {
  TrainerRun run(tiny(10));
  run.data.train = std::make_shared<Fussy>(0);
  const TrainSummary summary = run.run();
  EXPECT_EQ(summary.ending, ExitReason::BadData);
  EXPECT_EQ(summary.iterations, 0);
  EXPECT_EQ(summary.applied, 0);
}

// What was trained is not lost with an exception.
TEST(TrainLoop, UnreadableValidationEndsTheRun) {
  Config c = tiny(4);
  c.eval.interval = 2;
  TrainerRun during(c);
  during.data.valid = {std::make_shared<Fussy>(3), 7};
  const TrainSummary early = during.run();
  EXPECT_EQ(early.ending, ExitReason::BadData);
  EXPECT_EQ(early.reason, "no sample 3");
  EXPECT_EQ(early.iterations, 2);
  expect_weights_after({0, 4}, during.assembly);

  c.eval.interval = 0;
  TrainerRun at_end(c);
  at_end.data.valid = {std::make_shared<Fussy>(), 7};
  at_end.data.test = {std::make_shared<Fussy>(3), 7};
  const TrainSummary late = at_end.run();
  EXPECT_EQ(late.ending, ExitReason::BadData);
  EXPECT_EQ(late.iterations, 4);
  EXPECT_TRUE(late.valid_loss);
}

TEST(TrainLoop, RampEqualsStepsByHand) {
  Config c = tiny(0);
  c.train.samples = 40;
  c.train.global_batch = 8;
  c.train.ramp_start = 2;
  c.train.ramp_increment = 2;
  c.train.ramp_samples = 18;
  c.eval.interval = 2;  // with its own number of micro-batches in between
  c.eval.iterations = 1;
  TrainerRun run(c);
  run.data.valid = {std::make_shared<Fussy>(), 7};
  const TrainSummary summary = run.run();
  EXPECT_EQ(summary.ending, ExitReason::Complete);
  std::vector<int64_t> sizes;
  for (const Progress& p : run.seen.iterations) sizes.push_back(p.batch);
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 2, 4, 4, 6, 8, 8}));
  EXPECT_EQ(static_cast<int64_t>(sizes.size()), summary.iterations);

  test::SmallRun by_hand(run.assembly.config);
  const Fussy samples;
  int64_t sample = 0;
  for (size_t step = 0; step < sizes.size(); ++step) {
    std::vector<HostBatch> batches(static_cast<size_t>(sizes[step] / 2));
    for (HostBatch& batch : batches) {
      batch.resize(2, 7, false);
      for (int64_t at = 0; at < 2; ++at) samples.read(sample++, batch, at);
    }
    const StepResult result = by_hand.stepper.step(batches);
    EXPECT_EQ(result.loss, run.seen.iterations[step].result.loss) << step;
    EXPECT_EQ(result.lr, run.seen.iterations[step].result.lr) << step;
  }
  EXPECT_TRUE(test::same_bits(run.assembly.params, by_hand.assembly.params, &Param::value));
}

// Remembers which samples were asked for.
class Remembering final : public Dataset {
 public:
  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    asked.push_back(index);
    good_.read(index, batch, at);
  }
  std::string describe(int64_t) const override { return ""; }
  mutable std::vector<int64_t> asked;

 private:
  MockDataset good_{kVocab, 7};
};

// Megatron validates with new samples each time, and at the end once more; test starts with its
// first.
TEST(TrainLoop, ValidationGoesOn) {
  for (const bool goes_on : {false, true}) {
    Config c = tiny(6);
    c.eval.interval = 2;
    c.eval.iterations = 1;
    TrainerRun run(c);
    const auto valid = std::make_shared<Remembering>(), test = std::make_shared<Remembering>();
    run.data.valid = {valid, 100, goes_on};
    run.data.test = {test, 100, goes_on};
    run.run();
    ASSERT_EQ(valid->asked.size(), 12u);
    for (int64_t i = 0; i < 12; ++i) {
      // Of the validations after iterations 2, 4 and 6 the third is only made at the end, which
      // Megatron counts as the fourth.
      const int64_t later = i >= 8 ? i + 4 : i;
      EXPECT_EQ(valid->asked[static_cast<size_t>(i)], goes_on ? later : i % 4);
    }
    EXPECT_EQ(test->asked, (std::vector<int64_t>{0, 1, 2, 3}));
  }
}

}  // namespace
}  // namespace bev
