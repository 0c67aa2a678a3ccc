#include "report/metrics_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;

std::vector<Json> lines_of(const std::filesystem::path& path) {
  std::vector<Json> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) lines.push_back(parse_json(line, "line"));
  return lines;
}

TEST(Metrics, ALineOfJsonForEachEvent) {
  const test::TemporaryDirectory dir;
  {
    MetricsWriter log(dir / "m.jsonl");
    log.start(1000, 3);
    log.add(Progress{
        .iteration = 1,
        .iterations = 3,
        .samples = 8,
        .batch = 8,
        .result = {
            .loss = 2.5, .losses = {{"lm", 2.5}}, .grad_norm = 0.5, .lr = 1e-3, .applied = true}});
    log.add(Progress{.iteration = 2,
                     .result = {.loss = NAN, .losses = {{"lm", NAN}}, .grad_norm = HUGE_VAL}});
    log.add(Validation{
        .iteration = 2, .split = "validation", .samples = 5, .loss = 3.5, .losses = {{"lm", 3.5}}});
    EXPECT_FALSE(log.failure());
  }
  const std::vector<Json> lines = lines_of(dir / "m.jsonl");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].at("event"), "start");
  EXPECT_EQ(lines[0].at("parameters"), 1000);
  EXPECT_EQ(lines[1].at("event"), "iteration");
  EXPECT_EQ(lines[1].at("consumed_samples"), 8);
  EXPECT_EQ(lines[1].at("lm_loss"), 2.5);
  EXPECT_EQ(lines[1].at("learning_rate"), 1e-3);
  EXPECT_EQ(lines[1].at("applied"), true);
  EXPECT_TRUE(lines[2].at("lm_loss").is_null());
  EXPECT_TRUE(lines[2].at("grad_norm").is_null());
  EXPECT_EQ(lines[3].at("event"), "validation");
  EXPECT_EQ(lines[3].at("lm_loss"), 3.5);
}

TEST(Metrics, AnotherRunIsAppended) {
  const test::TemporaryDirectory dir;
  for (int run = 0; run < 2; ++run) MetricsWriter(dir / "m.jsonl").start(1, 1);
  EXPECT_EQ(lines_of(dir / "m.jsonl").size(), 2u);
}

TEST(Metrics, AFullDiskIsRememberedNotThrown) {
  MetricsWriter log("/dev/full");
  log.start(1, 1);
  ASSERT_TRUE(log.failure());
  EXPECT_NE(log.failure()->find("/dev/full is incomplete: No space left"), std::string::npos)
      << *log.failure();
  log.add(Progress{});
  log.add(Validation{});
}

TEST(Metrics, AFileThatCannotBeOpened) {
  const test::TemporaryDirectory dir;
  expect_error(ErrorKind::Data, "no/m.jsonl", [&] { MetricsWriter(dir / "no/m.jsonl"); });
  expect_error(ErrorKind::Data, "directory", [&] { MetricsWriter log(dir.path()); });
}

}  // namespace
}  // namespace bev
