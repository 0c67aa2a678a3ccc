#include "report/log_line.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bev {
namespace {

Progress progress(int64_t iteration, double loss, double seconds = 0.5, bool applied = true) {
  return {.iteration = iteration,
          .iterations = 100,
          .samples = 8 * iteration,
          .batch = 8,
          .result = {.loss = loss,
                     .losses = {{"lm", loss}},
                     .grad_norm = 1.25,
                     .lr = 1e-4,
                     .next_lr = 6e-5 * 50 / 183105,
                     .applied = applied},
          .seconds = seconds,
          .tokens_per_second = 2000,
          .seconds_left = 75};
}

TEST(LogLine, IsMegatrons) {
  LogInterval interval;
  EXPECT_TRUE(interval.empty());
  interval.add(progress(4, 3.0));
  interval.add(progress(5, 2.0));
  EXPECT_FALSE(interval.empty());
  const std::string line = interval.take_line(progress(5, 2.0), 0, 0);
  EXPECT_EQ(line.substr(0, line.find(" tokens/s")),
            " iteration        5/     100 | consumed samples:           40 | elapsed time per "
            "iteration (ms): 500.0 | learning rate: 1.638E-08 | global batch size:     8 | lm "
            "loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 1.250 | number of skipped "
            "iterations:   0 | number of nan iterations:   0 |");
  EXPECT_NE(line.find("| tokens/s: 2000 |"), std::string::npos) << line;
  EXPECT_EQ(line.find("of peak"), std::string::npos) << line;
  EXPECT_NE(line.find(" ETA: 1 min 15 s |"), std::string::npos) << line;
}

TEST(LogLine, StartsAnewAfterEachLine) {
  LogInterval interval;
  interval.add(progress(1, 9.0, 10));
  (void)interval.take_line(progress(1, 9.0), 0, 0);
  EXPECT_TRUE(interval.empty());
  interval.add(progress(2, 4.0, 0.1));
  const std::string line = interval.take_line(progress(2, 4.0), 0, 0);
  EXPECT_NE(line.find("(ms): 100.0 |"), std::string::npos) << line;
  EXPECT_NE(line.find("lm loss: 4.000000E+00"), std::string::npos) << line;
}

TEST(LogLine, SkippedIterationsAreNoPartOfTheMean) {
  LogInterval interval;
  Progress bad = progress(2, NAN, 0.5, false);
  bad.result.grad_norm = NAN;
  Progress overflow = progress(3, 3.0, 0.5, false);  // finite loss, gradient not
  interval.add(progress(1, 3.0));
  interval.add(bad);
  interval.add(overflow);
  const std::string line = interval.take_line(bad, 0, 0);
  EXPECT_NE(line.find("lm loss: 3.000000E+00 |"), std::string::npos) << line;
  EXPECT_NE(line.find("skipped iterations:   2 | number of nan iterations:   1 |"),
            std::string::npos)
      << line;
  EXPECT_EQ(line.find("grad norm"), std::string::npos) << line;
  interval.add(bad);
  EXPECT_EQ(interval.take_line(bad, 0, 0).find("lm loss"), std::string::npos);
}

TEST(LogLine, FractionOfPeak) {
  LogInterval interval;
  Progress fast = progress(1, 3.0, 1.0), slow = progress(2, 3.0, 3.0);
  fast.tokens_per_second = 4000;  // 4000 tokens in 1 s and 6000 in 3 s: 2500 per second
  interval.add(fast);
  interval.add(slow);
  const std::string line = interval.take_line(slow, 10, 100'000);
  EXPECT_NE(line.find("tokens/s: 2500 | of peak: 25.0 % |"), std::string::npos) << line;
}

TEST(LogLine, Validation) {
  Validation v{.iteration = 5, .split = "validation", .loss = 2.0, .losses = {{"lm", 2.0}}};
  const std::string line =
      " validation loss at iteration 5 | lm loss value: 2.000000E+00 | lm loss PPL: 7.389056E+00 "
      "| ";
  const std::string rule(line.size() + 1, '-');
  EXPECT_EQ(validation_block(v), rule + "\n" + line + "\n" + rule);
  v.at_end = true;
  EXPECT_NE(validation_block(v).find("iteration 5 on validation set |"), std::string::npos);
  v.split = "test";
  v.losses = {{"lm", 50}};
  EXPECT_NE(validation_block(v).find("iteration 5 on test set |"), std::string::npos);
  EXPECT_NE(validation_block(v).find("PPL: 4.851652E+08"), std::string::npos);  // e^20
}

// Fails if a line shows the first loss only, or adds up different losses.
TEST(LogLine, EveryLossHasItsName) {
  LogInterval interval;
  Progress p = progress(4, 3.0);
  p.result.losses = {{"lm", 3.0}, {"sop", 0.5}};
  interval.add(p);
  p.result.losses = {{"lm", 2.0}, {"sop", 0.25}};
  interval.add(p);
  const std::string line = interval.take_line(p, 10, 0);
  EXPECT_NE(line.find(" lm loss: 2.500000E+00 | sop loss: 3.750000E-01 |"), std::string::npos)
      << line;
  const Validation v{.iteration = 5, .split = "validation", .losses = {{"lm", 2.0}, {"sop", 0.5}}};
  EXPECT_NE(validation_block(v).find("lm loss PPL: 7.389056E+00 | sop loss value: 5.000000E-01 |"),
            std::string::npos)
      << validation_block(v);
}

// Fails when an accuracy is called a loss, or has a perplexity.
TEST(LogLine, AccuraciesAreNoLosses) {
  LogInterval interval;
  Progress p = progress(4, 3.0);
  p.result.losses = {{"retrieval", 3.0}, {"top1_accuracy", 40}};
  interval.add(p);
  const std::string line = interval.take_line(p, 10, 0);
  EXPECT_NE(line.find(" retrieval loss: 3.000000E+00 | top1_accuracy: 4.000000E+01 |"),
            std::string::npos)
      << line;
  const Validation v{.split = "validation", .losses = {{"top1_accuracy", 25}}};
  const std::string block = validation_block(v);
  EXPECT_NE(block.find("| top1_accuracy value: 2.500000E+01 | \n"), std::string::npos) << block;
}

TEST(LiveLine, FitsTheTerminal) {
  const Progress p = progress(5, 2.0);
  const std::string whole = live_line(p, 0);
  EXPECT_NE(whole.find("5/100  loss 2.0000  2000 tokens/s"), std::string::npos) << whole;
  for (size_t columns = 1; columns < 80; ++columns)
    EXPECT_LT(live_line(p, columns).size(), columns);
  EXPECT_EQ(live_line(p, 200), whole);
}

}  // namespace
}  // namespace bev
