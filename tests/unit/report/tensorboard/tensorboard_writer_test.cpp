#include "report/tensorboard/tensorboard_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <fstream>

#include "support/event_reader.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

namespace fs = std::filesystem;
using test::Curves;
using test::ReadEvent;

constexpr int64_t kBatch = 8;

Progress iteration(int64_t number, double loss) {
  return {.iteration = number,
          .iterations = 100,
          .samples = number * kBatch,
          .batch = kBatch,
          .result = {.loss = loss,
                     .losses = {{"lm", loss}},
                     .grad_norm = 0.5,
                     .lr = 1e-3,
                     .next_lr = 2e-3,
                     .loss_scale = 4096,
                     .applied = true},
          .seconds = 0.25,
          .tokens_per_second = 2048};
}

LogConfig every(int64_t interval, int64_t queue) {
  LogConfig config;
  config.tensorboard_interval = interval;
  config.tensorboard_queue = queue;
  return config;
}

Validation validation(int64_t number, double loss) {
  return {.iteration = number,
          .split = "validation",
          .samples = 99,
          .loss = loss,
          .losses = {{"lm", loss}}};
}

// Both kinds of readers see the same.
Curves curves_of(const fs::path& folder) {
  const Curves curves = test::curves_of_python(folder);
  EXPECT_EQ(curves, test::curves_of_fast_loader(folder));
  return curves;
}

using Curve = Curves::mapped_type;

TEST(TensorBoardWriter, TagsAndValues) {
  const test::TemporaryDirectory dir;
  {
    TensorBoardWriter log({}, dir / "new/tb", 4, "x = 1\n[y]\nz = 2\n");
    log.add(iteration(1, 2.5));
    log.add(validation(1, 3));
    Validation test_set = validation(1, 25);
    test_set.split = "test";
    log.add(test_set);
  }
  const float million = std::exp(20.0f);
  const Curves expected{{"learning-rate", {{1, 2e-3f}}},
                        {"learning-rate vs samples", {{8, 2e-3f}}},
                        {"batch-size", {{1, 8}}},
                        {"batch-size vs samples", {{8, 8}}},
                        {"lm loss", {{1, 2.5f}}},
                        {"lm loss vs samples", {{8, 2.5f}}},
                        {"loss-scale", {{1, 4096}}},
                        {"loss-scale vs samples", {{8, 4096}}},
                        {"world-size", {{1, 4}}},
                        {"world-size vs samples", {{8, 4}}},
                        {"grad-norm", {{1, 0.5f}}},
                        {"grad-norm vs samples", {{8, 0.5f}}},
                        {"iteration-time", {{1, 0.25f}}},
                        {"throughput", {{1, 2048}}},
                        {"skipped-iterations", {{1, 0}}},
                        {"lm loss validation", {{1, 3}}},
                        {"lm loss validation vs samples", {{8, 3}}},
                        {"lm loss validation ppl", {{1, std::exp(3.0f)}}},
                        {"lm loss validation ppl vs samples", {{8, std::exp(3.0f)}}},
                        {"lm loss test", {{1, 25}}},
                        {"lm loss test vs samples", {{8, 25}}},
                        {"lm loss test ppl", {{1, million}}},
                        {"lm loss test ppl vs samples", {{8, million}}}};
  EXPECT_EQ(curves_of(dir / "new/tb"), expected);
}

// Fails when a loss of a BERT has no tags, or those of another loss.
TEST(TensorBoardWriter, EveryLossOfABert) {
  const test::TemporaryDirectory dir;
  {
    TensorBoardWriter log({}, dir.path(), 1, "");
    Progress step = iteration(1, 3);
    step.result.losses = {{"lm", 2.5}, {"sop", 0.5}};
    log.add(step);
    Validation both = validation(1, 4);
    both.losses = {{"lm", 3}, {"sop", 1}};
    log.add(both);
  }
  const Curves curves = curves_of(dir.path());
  EXPECT_EQ(curves.at("lm loss"), (Curve{{1, 2.5f}}));
  EXPECT_EQ(curves.at("sop loss"), (Curve{{1, 0.5f}}));
  EXPECT_EQ(curves.at("sop loss vs samples"), (Curve{{8, 0.5f}}));
  EXPECT_EQ(curves.at("lm loss validation"), (Curve{{1, 3}}));
  EXPECT_EQ(curves.at("sop loss validation"), (Curve{{1, 1}}));
  EXPECT_EQ(curves.at("sop loss validation ppl"), (Curve{{1, std::exp(1.0f)}}));
}

// Fails when an accuracy is called a loss, or has a perplexity.
TEST(TensorBoardWriter, Accuracies) {
  const test::TemporaryDirectory dir;
  {
    TensorBoardWriter log({}, dir.path(), 1, "");
    Progress step = iteration(1, 3);
    step.result.losses = {{"retrieval", 3}, {"top1_accuracy", 40}};
    log.add(step);
    Validation both = validation(1, 4);
    both.losses = {{"retrieval", 4}, {"top1_accuracy", 25}};
    log.add(both);
  }
  const Curves curves = curves_of(dir.path());
  EXPECT_EQ(curves.at("top1_accuracy"), (Curve{{1, 40}}));
  EXPECT_EQ(curves.at("top1_accuracy validation"), (Curve{{1, 25}}));
  EXPECT_FALSE(curves.contains("top1_accuracy validation ppl"));
}

TEST(TensorBoardWriter, BeginsWithVersionAndConfiguration) {
  const test::TemporaryDirectory dir;
  const TensorBoardWriter log({}, dir.path(), 1, "x = 1\n[y]\n");
  const std::vector<ReadEvent> events = test::read_events(log.file());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_NEAR(events[0].time, static_cast<double>(std::time(nullptr)), 60);
  ASSERT_EQ(events[1].points.size(), 1u);
  EXPECT_EQ(events[1].points[0].tag, "configuration");
  EXPECT_EQ(events[1].points[0].plugin, "text");
  EXPECT_EQ(events[1].points[0].text, "    x = 1\n    [y]\n");
}

TEST(TensorBoardWriter, OnlyIterationsOfTheInterval) {
  const test::TemporaryDirectory dir;
  {
    TensorBoardWriter log(every(3, 1000), dir.path(), 1, "");
    for (int64_t i = 1; i <= 7; ++i) log.add(iteration(i, static_cast<double>(i)));
    log.add(validation(7, 2));
  }
  const Curves curves = curves_of(dir.path());
  EXPECT_EQ(curves.at("lm loss"), (Curve{{3, 3}, {6, 6}}));
  EXPECT_EQ(curves.at("lm loss vs samples"), (Curve{{24, 3}, {48, 6}}));
  EXPECT_EQ(curves.at("lm loss validation vs samples"), (Curve{{56, 2}}));
}

TEST(TensorBoardWriter, WhatIsNotFinite) {
  const test::TemporaryDirectory dir;
  {
    TensorBoardWriter log({}, dir.path(), 1, "");
    Progress skipped = iteration(1, NAN);
    skipped.result.applied = false;
    skipped.result.grad_norm = HUGE_VAL;
    log.add(skipped);
    log.add(iteration(2, 2));
    log.add(validation(2, NAN));
  }
  const Curves curves = test::curves_of_python(dir.path());
  ASSERT_EQ(curves.at("lm loss").size(), 2u);
  EXPECT_TRUE(std::isnan(curves.at("lm loss")[0].second));
  EXPECT_EQ(curves.at("grad-norm"), (Curve{{2, 0.5f}}));
  EXPECT_EQ(curves.at("skipped-iterations"), (Curve{{1, 1}, {2, 1}}));
  EXPECT_TRUE(std::isnan(curves.at("lm loss validation ppl").at(0).second));
}

// A validation of a run that trains nothing.
TEST(TensorBoardWriter, SamplesThatAreNotKnown) {
  const test::TemporaryDirectory dir;
  TensorBoardWriter({}, dir.path(), 1, "").add(validation(5, 2));
  const Curves curves = curves_of(dir.path());
  EXPECT_EQ(curves.at("lm loss validation"), (Curve{{5, 2}}));
  EXPECT_FALSE(curves.contains("lm loss validation vs samples"));
}

TEST(TensorBoardWriter, ARunThatGoesOnReplacesWhatItDoesAgain) {
  const test::TemporaryDirectory dir;
  {
    TensorBoardWriter log({}, dir.path(), 1, "first");
    for (int64_t i = 1; i <= 6; ++i) {
      log.add(iteration(i, 10));
      if (i % 2 == 0) log.add(validation(i, 10));
    }
  }
  {
    TensorBoardWriter log({}, dir.path(), 1, "second");
    Progress first = iteration(4, 20);
    first.result.grad_norm = NAN;
    log.add(first);
    EXPECT_EQ(curves_of(dir.path()).at("lm loss").size(), 6u) << "nothing was flushed";
    log.add(iteration(5, 20));
    log.add(validation(5, 20));
  }
  const Curves curves = curves_of(dir.path());
  EXPECT_EQ(curves.at("lm loss"), (Curve{{1, 10}, {2, 10}, {3, 10}, {4, 20}, {5, 20}}));
  EXPECT_EQ(curves.at("lm loss vs samples"),
            (Curve{{8, 10}, {16, 10}, {24, 10}, {32, 20}, {40, 20}}));
  EXPECT_EQ(curves.at("throughput").size(), 5u);
  EXPECT_EQ(curves.at("lm loss validation"), (Curve{{2, 10}, {4, 10}, {5, 20}}));
  // Its first new point comes later than those of others.
  EXPECT_EQ(curves.at("grad-norm").size(), 5u);
  EXPECT_EQ(curves.at("grad-norm").back().first, 5);
}

TEST(TensorBoardWriter, GoesBack) {
  const test::TemporaryDirectory dir;
  {
    TensorBoardWriter log({}, dir.path(), 1, "");
    for (int64_t i = 1; i <= 4; ++i) log.add(iteration(i, 10));
    for (int64_t i = 3; i <= 5; ++i) log.add(iteration(i, 20));
    log.add(iteration(4, 30));
  }
  const Curves curves = curves_of(dir.path());
  EXPECT_EQ(curves.at("lm loss"), (Curve{{1, 10}, {2, 10}, {3, 20}, {4, 30}}));
  EXPECT_EQ(curves.at("lm loss vs samples"), (Curve{{8, 10}, {16, 10}, {24, 20}, {32, 30}}));
}

// The validation at the end may follow one of the same iteration.
TEST(TensorBoardWriter, TheLastPointAtAnX) {
  const test::TemporaryDirectory dir;
  {
    TensorBoardWriter log({}, dir.path(), 1, "");
    log.add(iteration(1, 1));
    log.add(validation(1, 10));
    log.add(validation(1, 20));
  }
  const Curves curves = curves_of(dir.path());
  EXPECT_EQ(curves.at("lm loss validation"), (Curve{{1, 20}}));
  EXPECT_EQ(curves.at("lm loss validation vs samples"), (Curve{{8, 20}}));
}

// Readers in Python warn of each change of the version.
TEST(TensorBoardWriter, OneVersionWhereNothingIsReplaced) {
  const test::TemporaryDirectory dir;
  TensorBoardWriter log({}, dir.path(), 1, "");
  log.add(iteration(1, 1));
  log.flush();
  int versions = 0;
  for (const ReadEvent& event : test::read_events(log.file())) versions += !event.version.empty();
  EXPECT_EQ(versions, 1);
}

TEST(TensorBoardWriter, PointsWaitForOthers) {
  const test::TemporaryDirectory dir;
  TensorBoardWriter log(every(1, 20), dir.path(), 1, "");
  const size_t before = test::read_events(log.file()).size();
  log.add(iteration(1, 1));
  EXPECT_EQ(test::read_events(log.file()).size(), before);
  log.add(iteration(2, 1));
  EXPECT_GT(test::read_events(log.file()).size(), before);
}

TEST(TensorBoardWriter, PointsWaitNotLong) {
  const test::TemporaryDirectory dir;
  TensorBoardWriter log({}, dir.path(), 1, "", 0);
  for (int64_t i = 1; i <= 2; ++i) {
    log.add(iteration(i, 1));
    EXPECT_EQ(curves_of(dir.path()).at("lm loss").size(), static_cast<size_t>(i));
  }
  log.add(validation(2, 1));
  EXPECT_TRUE(curves_of(dir.path()).contains("lm loss validation"));
}

TEST(TensorBoardWriter, AFolderThatCannotBeMade) {
  const test::TemporaryDirectory dir;
  std::ofstream(dir / "file") << "";
  test::expect_error(ErrorKind::Data, "file/tb (log.tensorboard)",
                     [&] { TensorBoardWriter({}, dir / "file/tb", 1, ""); });
}

}  // namespace
}  // namespace bev
