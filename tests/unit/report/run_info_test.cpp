#include <gtest/gtest.h>

#include <fstream>

#include "report/status_report.h"
#include "support/expect_error.h"
#include "support/small_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev::app {
namespace {

namespace fs = std::filesystem;

using test::expect_error;
using test::small_checkpoint;
using test::TemporaryDirectory;

void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

TEST(RunInfo, OfAWholeFolder) {
  const TemporaryDirectory run;
  RunStatus status{.iteration = 5};
  status.process = own_process();
  put(run / "status.json", to_text(status));
  put(run / "metrics.jsonl", "{\"event\": \"iteration\", \"iteration\": 4}\n");
  put(run / "config.toml", "[parallel]\nranks = 2\n[no]\nsuch = 1\n");
  fs::create_directory(run / "model");
  small_checkpoint(100, 1).write(run / "checkpoints");
  small_checkpoint(200, 1).write(run / "checkpoints");
  const RunInfo facts = run_facts(run.path());
  EXPECT_EQ(facts.status->iteration, 5);
  EXPECT_EQ(facts.life, ProcessState::Alive);
  EXPECT_EQ(facts.metrics->iteration, 4);
  EXPECT_TRUE(facts.has_config);
  EXPECT_TRUE(facts.has_model);
  EXPECT_EQ(facts.saved->iteration, 200);
  EXPECT_EQ(facts.saved->path.filename(), "iter_0000200");
  EXPECT_EQ(facts.saved_problem, "");
  EXPECT_EQ(facts.ranks, 2);
  EXPECT_NE(facts.layout.find("2 ranks"), std::string::npos);
}

TEST(RunInfo, ANewerCheckpointThatCannotBeUsedIsNamed) {
  const TemporaryDirectory run;
  small_checkpoint(100, 1).write(run / "checkpoints");
  fs::remove(small_checkpoint(200, 1).write(run / "checkpoints") / "manifest.json");
  RunInfo facts = run_facts(run.path());
  EXPECT_EQ(facts.saved->iteration, 100);
  EXPECT_NE(facts.saved_problem.find("iter_0000200 is newer, but cannot be used"),
            std::string::npos);
  fs::remove(run / "checkpoints/iter_0000100/manifest.json");
  facts = run_facts(run.path());
  EXPECT_FALSE(facts.saved);
  EXPECT_NE(facts.saved_problem.find("none of 2 checkpoints can be used"), std::string::npos);
}

TEST(RunInfo, CheckpointsElsewhereAreFound) {
  const TemporaryDirectory run, disk;
  const fs::path saved = small_checkpoint(100, 1).write(disk / "saved");
  put(run / "config.toml", "[checkpoint]\nsave = \"" + (disk / "saved").string() + "\"\n");
  EXPECT_EQ(run_facts(run.path()).saved->path, saved);
  put(run / "config.toml", "");
  RunStatus status;
  status.checkpoint = saved.string();
  put(run / "status.json", to_text(status));
  EXPECT_EQ(run_facts(run.path()).saved->path, saved);
}

TEST(RunInfo, ALaterLookReadsNewCheckpointsOnly) {
  const TemporaryDirectory run;
  const fs::path first = small_checkpoint(100, 1).write(run / "checkpoints");
  const RunInfo earlier = run_facts(run.path());
  fs::remove(first / "manifest.json");
  EXPECT_EQ(run_facts(run.path(), &earlier).saved->iteration, 100);
  small_checkpoint(200, 1).write(run / "checkpoints");
  EXPECT_EQ(run_facts(run.path(), &earlier).saved->iteration, 200);
}

TEST(RunInfo, DamageIsAFact) {
  const TemporaryDirectory run;
  put(run / "status.json", "{");
  fs::create_directory(run / "metrics.jsonl");
  const RunInfo facts = run_facts(run.path());
  EXPECT_FALSE(facts.status);
  EXPECT_NE(facts.status_problem.find("not valid JSON"), std::string::npos);
  EXPECT_NE(facts.metrics_problem.find("not a regular file"), std::string::npos);
}

TEST(RunInfo, OfWhatIsNoRun) {
  const TemporaryDirectory dir;
  expect_error(ErrorKind::Data, "is not the folder of a run", [&] { run_facts(dir.path()); });
  expect_error(ErrorKind::Data, "there is no folder", [&] { run_facts(dir / "none"); });
  put(dir / "file", "");
  expect_error(ErrorKind::Data, "is a file", [&] { run_facts(dir / "file"); });
  small_checkpoint(100, 1).write(dir / "saved");
  expect_error(ErrorKind::Data, "holds checkpoints, but is not the folder of a run",
               [&] { run_facts(dir / "saved"); });
}

}  // namespace
}  // namespace bev::app
