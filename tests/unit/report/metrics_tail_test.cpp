#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "report/metrics_reader.h"
#include "report/metrics_writer.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

LastMetrics tail_of(const std::string& text) {
  const test::TemporaryDirectory dir;
  std::ofstream(dir / "m") << text;
  return read_metrics_tail(dir / "m").value();
}

TEST(MetricsTail, OfWhatARunWrites) {
  const test::TemporaryDirectory dir;
  EXPECT_FALSE(read_metrics_tail(dir / "m"));
  {
    MetricsWriter log(dir / "m");
    log.start(1000, 50);
    log.add(Progress{.iteration = 1, .samples = 8, .result = {.loss = 3, .losses = {{"lm", 3}}}});
    log.add(
        Validation{.iteration = 1, .split = "validation", .loss = 3.5, .losses = {{"lm", 3.5}}});
    log.add(Progress{.iteration = 2,
                     .samples = 16,
                     .result = {.loss = 2.5, .losses = {{"lm", 2.5}}, .grad_norm = 0.5, .lr = 1e-3},
                     .seconds = 0.25,
                     .tokens_per_second = 1000});
    log.add(Validation{.iteration = 2, .split = "test", .loss = 9, .losses = {{"lm", 9}}});
  }
  const LastMetrics last = read_metrics_tail(dir / "m").value();
  EXPECT_EQ(last.iteration, 2);
  EXPECT_EQ(last.iterations, 50);
  EXPECT_EQ(last.samples, 16);
  EXPECT_EQ(last.loss, 2.5);
  EXPECT_EQ(last.grad_norm, 0.5);
  EXPECT_EQ(last.learning_rate, 1e-3);
  EXPECT_EQ(last.seconds, 0.25);
  EXPECT_EQ(last.tokens_per_second, 1000);
  EXPECT_EQ(last.valid_loss, 3.5);
  EXPECT_GT(last.written, 1e9);
}

// Fails when a model with two losses is reported by its first loss alone.
TEST(MetricsTail, OfAModelWithTwoLosses) {
  const test::TemporaryDirectory dir;
  MetricsWriter log(dir / "m");
  log.add(Progress{.iteration = 1, .result = {.loss = 3, .losses = {{"lm", 2.5}, {"sop", 0.5}}}});
  log.add(Validation{
      .iteration = 1, .split = "validation", .loss = 2, .losses = {{"lm", 1.75}, {"sop", NAN}}});
  const LastMetrics last = read_metrics_tail(dir / "m").value();
  EXPECT_EQ(last.loss, 3);
  EXPECT_EQ(last.losses, (std::vector<NamedLoss>{{"lm", 2.5}, {"sop", 0.5}}));
  EXPECT_EQ(last.valid_loss, 2);
  ASSERT_EQ(last.valid_losses.size(), 2u);
  EXPECT_TRUE(std::isnan(last.valid_losses[1].mean));
  const RunMetrics all = read_metrics(dir / "m");
  EXPECT_EQ(all.iterations.at(0).loss, 3);
  EXPECT_EQ(all.validations.at(0).loss, 2);
}

TEST(MetricsTail, OfALongRunOnlyTheEndAndTheFirstLine) {
  std::string text = R"({"event": "start", "iterations": 77})"
                     "\n";
  text += R"({"event": "validation", "lm_loss": 1})"
          "\n";
  for (int i = 1; i <= 20000; ++i)
    text += R"({"event": "iteration", "iteration": )" + std::to_string(i) + "}\n";
  const LastMetrics last = tail_of(text);
  EXPECT_EQ(last.iteration, 20000);
  EXPECT_EQ(last.iterations, 77);
  EXPECT_FALSE(last.valid_loss);
}

TEST(MetricsTail, HalfALineAndNonsenseCountAsNotThere) {
  const LastMetrics last = tail_of(
      "[]\nnonsense\n{\"event\": \"iteration\", \"iteration\": 5, \"lm_loss\": null}\n"
      "{\"event\": 7}\n\n\n{\"event\": \"iteration\", \"iteration\": 6, \"lm_l");
  EXPECT_EQ(last.iteration, 5);
  EXPECT_FALSE(last.loss);
  EXPECT_EQ(tail_of("").iteration, 0);
  EXPECT_EQ(tail_of("\n\n").iteration, 0);
  EXPECT_EQ(tail_of("{\"event\": \"iteration\", \"iteration\": -4}\n").iteration, 0);
  EXPECT_EQ(tail_of(std::string(1 << 20, 'x')).iteration, 0);
}

TEST(MetricsTail, OfWhatIsNoFile) {
  const test::TemporaryDirectory dir;
  test::expect_error(ErrorKind::Data, "not a regular file", [&] { read_metrics_tail(dir.path()); });
}

}  // namespace
}  // namespace bev
