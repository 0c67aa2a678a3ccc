#include "report/metrics_reader.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/format.h"
#include "report/metrics_writer.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;

RunMetrics parsed(std::string_view text) {
  MetricsReader reader;
  reader.read(text);
  return reader.finish();
}

std::string iteration_line(int64_t number, double loss) {
  return format("{{\"event\":\"iteration\",\"iteration\":{},\"lm_loss\":{}}}\n", number, loss);
}

std::vector<double> losses(const RunMetrics& metrics) {
  std::vector<double> found;
  for (const IterationPoint& point : metrics.iterations) found.push_back(point.loss);
  return found;
}

// Fails when one of several losses is lost, mixed up with another, or taken for their sum.
TEST(MetricsFile, ReadsEachOfSeveralLosses) {
  const test::TemporaryDirectory dir;
  {
    MetricsWriter log(dir / "m.jsonl");
    log.add(
        Progress{.iteration = 1,
                 .result = {.loss = 3, .losses = {{"lm", 2.5}, {"sop", 0.5}}, .applied = true}});
    log.add(Validation{
        .iteration = 1, .split = "validation", .loss = 2, .losses = {{"lm", 1.75}, {"sop", NAN}}});
  }
  const RunMetrics metrics = read_metrics(dir / "m.jsonl");
  EXPECT_EQ(metrics.loss_names, (std::vector<std::string>{"lm", "sop"}));
  EXPECT_EQ(metrics.iterations[0].loss, 3);
  EXPECT_EQ(metrics.iterations[0].losses[0], 2.5);
  EXPECT_EQ(metrics.iterations[0].losses[1], 0.5);
  EXPECT_EQ(metrics.validations[0].losses[0], 1.75);
  EXPECT_TRUE(std::isnan(metrics.validations[0].losses[1]));
  // A single loss is the sum, whatever its name.
  EXPECT_EQ(parsed("{\"event\":\"iteration\",\"iteration\":1,\"nsp_loss\":2}\n").iterations[0].loss,
            2);
  // Accuracies have their whole name.
  const RunMetrics ict = parsed(
      "{\"event\":\"iteration\",\"iteration\":1,\"loss\":2,\"retrieval_loss\":2,"
      "\"top1_accuracy\":40}\n");
  EXPECT_EQ(ict.loss_names, (std::vector<std::string>{"retrieval", "top1_accuracy"}));
  EXPECT_EQ(ict.iterations[0].losses[1], 40);
  // More losses than a model can have.
  std::string many = "{\"event\":\"iteration\",\"iteration\":1";
  for (int i = 0; i < 20; ++i) many += format(",\"l{}_loss\":{}", i, i);
  EXPECT_EQ(parsed(many + "}\n").loss_names.size(), static_cast<size_t>(kMostLosses));
}

TEST(MetricsFile, ReadsWhatTheLogWrites) {
  const test::TemporaryDirectory dir;
  {
    MetricsWriter log(dir / "m.jsonl");
    log.start(1000, 3);
    log.add(Progress{.iteration = 1,
                     .iterations = 3,
                     .samples = 8,
                     .batch = 8,
                     .result = {.loss = 2.5,
                                .losses = {{"lm", 2.5}},
                                .grad_norm = 0.5,
                                .lr = 1e-3,
                                .loss_scale = 4,
                                .applied = true},
                     .seconds = 0.25,
                     .tokens_per_second = 512});
    log.add(Progress{.iteration = 2,
                     .result = {.loss = NAN, .losses = {{"lm", NAN}}, .applied = false}});
    log.add(Validation{
        .iteration = 2, .split = "validation", .samples = 5, .loss = 3.5, .losses = {{"lm", 3.5}}});
    log.add(Validation{
        .iteration = 2, .split = "test", .samples = 6, .loss = 3.25, .losses = {{"lm", 3.25}}});
  }
  const RunMetrics metrics = read_metrics(dir / "m.jsonl");
  ASSERT_EQ(metrics.starts.size(), 1u);
  EXPECT_GT(metrics.starts[0].time, 1'600'000'000);
  EXPECT_EQ(metrics.starts[0].parameters, 1000);
  EXPECT_EQ(metrics.starts[0].iterations, 3);
  ASSERT_EQ(metrics.iterations.size(), 2u);
  const IterationPoint& first = metrics.iterations[0];
  EXPECT_EQ(first.iteration, 1);
  EXPECT_EQ(first.consumed_samples, 8);
  EXPECT_EQ(first.global_batch, 8);
  EXPECT_EQ(first.loss, 2.5);
  EXPECT_EQ(first.grad_norm, 0.5);
  EXPECT_EQ(first.learning_rate, 1e-3);
  EXPECT_EQ(first.loss_scale, 4);
  EXPECT_EQ(first.seconds, 0.25);
  EXPECT_EQ(first.tokens_per_second, 512);
  EXPECT_TRUE(first.applied);
  EXPECT_TRUE(std::isnan(metrics.iterations[1].loss));
  EXPECT_FALSE(metrics.iterations[1].applied);
  ASSERT_EQ(metrics.validations.size(), 1u);
  EXPECT_EQ(metrics.validations[0].loss, 3.5);
  EXPECT_EQ(metrics.validations[0].samples, 5);
  ASSERT_EQ(metrics.tests.size(), 1u);
  EXPECT_EQ(metrics.tests[0].loss, 3.25);
  EXPECT_EQ(metrics.unusable_lines, 0);
  EXPECT_FALSE(metrics.has_half_line);
}

TEST(MetricsFile, KeepsNotesAndIgnoresWhatItDoesNotKnow) {
  const RunMetrics metrics = parsed(
      "{\"event\":\"guard\",\"iteration\":7,\"text\":\"spike\",\"more\":[1]}\n"
      "{\"event\":\"control\",\"iteration\":8,\"text\":\"save\"}\n"
      "{\"event\":\"end\",\"iteration\":9,\"text\":\"complete\"}\n"
      "{\"event\":\"of the future\",\"iteration\":10}\n");
  ASSERT_EQ(metrics.notes.size(), 3u);
  EXPECT_EQ(metrics.notes[0].iteration, 7);
  EXPECT_EQ(metrics.notes[0].event, "guard");
  EXPECT_EQ(metrics.notes[0].text, "spike");
  EXPECT_EQ(metrics.notes[2].event, "end");
  EXPECT_EQ(metrics.unusable_lines, 0);
}

TEST(MetricsFile, CountsLinesThatCannotBeUsed) {
  const RunMetrics metrics = parsed(
      "no json\n[1]\n{\"iteration\":1}\n{\"event\":3}\n{\"event\":\"iteration\"}\n"
      "{\"event\":\"iteration\",\"iteration\":-1}\n{\"event\":\"iteration\",\"iteration\":1.5}\n"
      "{\"event\":\"iteration\",\"iteration\":18446744073709551615}\n"
      "{\"event\":\"iteration\",\"iteration\":1e999}\n\xFF\xFE\n\n" +
      iteration_line(1, 2));
  EXPECT_EQ(metrics.unusable_lines, 10);
  EXPECT_EQ(losses(metrics), std::vector<double>{2});
}

TEST(MetricsFile, NumbersOfTheWrongTypeAreNotThere) {
  const RunMetrics metrics = parsed(
      "{\"event\":\"iteration\",\"iteration\":1,\"lm_loss\":\"low\",\"grad_norm\":[],"
      "\"learning_rate\":3,\"applied\":1,\"consumed_samples\":-4,\"seconds\":null}\n");
  ASSERT_EQ(metrics.iterations.size(), 1u);
  const IterationPoint& point = metrics.iterations[0];
  EXPECT_TRUE(std::isnan(point.loss));
  EXPECT_TRUE(std::isnan(point.grad_norm));
  EXPECT_TRUE(std::isnan(point.seconds));
  EXPECT_TRUE(std::isnan(point.tokens_per_second));
  EXPECT_EQ(point.learning_rate, 3);
  EXPECT_EQ(point.consumed_samples, 0);
  EXPECT_TRUE(point.applied);
}

TEST(MetricsFile, AHalfLineAtTheEndIsNoFault) {
  const std::string whole = iteration_line(1, 2) + iteration_line(2, 1);
  for (size_t length = iteration_line(1, 2).size() + 1; length < whole.size() - 1; ++length) {
    const RunMetrics metrics = parsed(whole.substr(0, length));
    EXPECT_EQ(metrics.iterations.size(), 1u) << length;
    EXPECT_TRUE(metrics.has_half_line) << length;
    EXPECT_EQ(metrics.unusable_lines, 0) << length;
  }
  const RunMetrics without_end = parsed(whole.substr(0, whole.size() - 1));
  EXPECT_EQ(without_end.iterations.size(), 2u);
  EXPECT_FALSE(without_end.has_half_line);
}

TEST(MetricsFile, InPiecesOfAnySizeItIsTheSame) {
  const std::string text =
      iteration_line(1, 4) + "x\n" + iteration_line(2, 3) + iteration_line(3, 2) + "{";
  for (size_t piece = 1; piece < 70; ++piece) {
    MetricsReader reader;
    for (size_t at = 0; at < text.size(); at += piece)
      reader.read(std::string_view(text).substr(at, piece));
    const RunMetrics metrics = reader.finish();
    EXPECT_EQ(losses(metrics), (std::vector<double>{4, 3, 2})) << piece;
    EXPECT_EQ(metrics.unusable_lines, 1) << piece;
    EXPECT_TRUE(metrics.has_half_line) << piece;
  }
}

TEST(MetricsFile, OfTheSameIterationTheLastCounts) {
  EXPECT_EQ(losses(parsed(iteration_line(1, 4) + iteration_line(2, 3) + iteration_line(3, 9) +
                          iteration_line(2, 5))),
            (std::vector<double>{4, 5, 9}));
  const RunMetrics validated = parsed(
      "{\"event\":\"validation\",\"iteration\":5,\"lm_loss\":2}\n"
      "{\"event\":\"validation\",\"iteration\":5,\"lm_loss\":1}\n");
  ASSERT_EQ(validated.validations.size(), 1u);
  EXPECT_EQ(validated.validations[0].loss, 1);
}

TEST(MetricsFile, ARunThatContinuesForgetsWhatItDoesAgain) {
  const std::string start = "{\"event\":\"start\",\"iterations\":9}\n";
  const RunMetrics metrics = parsed(
      start + iteration_line(1, 8) + iteration_line(2, 7) + iteration_line(3, 6) +
      iteration_line(4, 5) +
      "{\"event\":\"validation\",\"iteration\":4,\"lm_loss\":2}\n"
      "{\"event\":\"guard\",\"iteration\":2,\"text\":\"a\"}\n"
      "{\"event\":\"guard\",\"iteration\":4,\"text\":\"b\"}\n" +
      start + "{\"event\":\"control\",\"iteration\":4,\"text\":\"c\"}\n" + iteration_line(3, 1));
  EXPECT_EQ(losses(metrics), (std::vector<double>{8, 7, 1}));
  EXPECT_TRUE(metrics.validations.empty());
  ASSERT_EQ(metrics.notes.size(), 3u);
  EXPECT_EQ(metrics.notes[1].text, "b");
  EXPECT_EQ(metrics.notes[2].text, "c");
  EXPECT_EQ(metrics.starts.size(), 2u);
}

TEST(MetricsFile, ARunThatBeginsAnewForgetsAnother) {
  const std::string start = "{\"event\":\"start\",\"iterations\":9}\n";
  const RunMetrics metrics =
      parsed(start + iteration_line(1, 8) + iteration_line(2, 7) +
             "{\"event\":\"end\",\"iteration\":2,\"text\":\"old\"}\n" + start +
             "{\"event\":\"control\",\"iteration\":0,\"text\":\"new\"}\n" + iteration_line(1, 5));
  EXPECT_EQ(losses(metrics), std::vector<double>{5});
  ASSERT_EQ(metrics.notes.size(), 1u);
  EXPECT_EQ(metrics.notes[0].text, "new");
}

TEST(MetricsFile, AGuardThatGoesBackKeepsWhatItSaid) {
  const RunMetrics metrics =
      parsed(iteration_line(1, 8) + iteration_line(2, 7) + iteration_line(3, 60) +
             "{\"event\":\"guard\",\"iteration\":3,\"text\":\"back\"}\n" + iteration_line(2, 6));
  EXPECT_EQ(losses(metrics), (std::vector<double>{8, 6}));
  EXPECT_EQ(metrics.notes.size(), 1u);
}

TEST(MetricsFile, ALineOfAnyLengthTakesBoundedMemory) {
  MetricsReader reader;
  reader.read("{\"event\":\"");
  const std::string piece(1 << 16, 'x');
  for (int i = 0; i < 1000; ++i) reader.read(piece);
  reader.read("\"}\n" + iteration_line(1, 2));
  const RunMetrics metrics = reader.finish();
  EXPECT_EQ(metrics.unusable_lines, 1);
  EXPECT_EQ(losses(metrics), std::vector<double>{2});
  // Short enough is short enough.
  const std::string note(MetricsReader::kLongestLine - 100, 'n');
  const RunMetrics noted =
      parsed(format("{{\"event\":\"guard\",\"iteration\":1,\"text\":\"{}\"}}\n", note));
  ASSERT_EQ(noted.notes.size(), 1u);
  EXPECT_LE(noted.notes[0].text.size(), 1000u);
}

TEST(MetricsFile, RefusesWhatHasNothingToSay) {
  const test::TemporaryDirectory dir;
  const auto write = [&](std::string_view text) {
    AtomicFile file(dir / "m.jsonl");
    file.write(text);
    file.commit();
  };
  expect_error(ErrorKind::Data, "none.jsonl", [&] { read_metrics(dir / "none.jsonl"); });
  expect_error(ErrorKind::Data, dir.path().string(), [&] { read_metrics(dir.path()); });
  write("");
  expect_error(ErrorKind::Data, "no line of a training:", [&] { read_metrics(dir / "m.jsonl"); });
  write("a\nb\nc\n{\"event\":\"iter");
  expect_error(ErrorKind::Data, "only 3 that cannot be used",
               [&] { read_metrics(dir / "m.jsonl"); });
  write(iteration_line(1, 2));
  EXPECT_EQ(read_metrics(dir / "m.jsonl").iterations.size(), 1u);
}

TEST(MetricsFile, AFileOfManyBuffersIsReadWhole) {
  const test::TemporaryDirectory dir;
  std::string text;
  for (int i = 1; i <= 20000; ++i) text += iteration_line(i, i);
  ASSERT_GT(text.size(), size_t{1} << 18);
  {
    AtomicFile file(dir / "m.jsonl");
    file.write(text);
    file.commit();
  }
  const RunMetrics metrics = read_metrics(dir / "m.jsonl");
  ASSERT_EQ(metrics.iterations.size(), 20000u);
  for (size_t i = 0; i < 20000; ++i)
    ASSERT_EQ(metrics.iterations[i].loss, static_cast<double>(i + 1));
}

}  // namespace
}  // namespace bev
