// The verbs about checkpoints, from files to what they print and return.
#include <gtest/gtest.h>

#include "app/cli/verbs.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/checkpoint_folder.h"
#include "support/expect_error.h"
#include "support/small_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev::app {
namespace {

namespace fs = std::filesystem;

using test::expect_error;
using test::small_checkpoint;
using test::SmallCheckpoint;
using test::TemporaryDirectory;

struct VerbOutcome {
  int code = 0;
  std::string output;
};

VerbOutcome call(int (*verb)(std::span<const std::string>), const std::vector<std::string>& args) {
  testing::internal::CaptureStdout();
  VerbOutcome outcome;
  try {
    outcome.code = verb(args);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  outcome.output = testing::internal::GetCapturedStdout();
  return outcome;
}

void expect_in(const std::string& text, const std::string& output) {
  EXPECT_NE(output.find(text), std::string::npos) << "missing: " << text << "\n" << output;
}

void damage(const fs::path& file) {
  std::string content = read_text(file);
  content.back() = static_cast<char>(content.back() ^ 1);
  AtomicFile other(file);
  other.write(content);
  other.commit();
}

std::vector<int64_t> iterations(const fs::path& root) {
  std::vector<int64_t> result;
  for (const CheckpointPlace& place : CheckpointFolder(root).list())
    result.push_back(place.iteration);
  return result;
}

using Iterations = std::vector<int64_t>;

class CheckpointVerbs : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  SmallCheckpoint write(int64_t iteration, double valid_loss, int ranks = 1) const {
    SmallCheckpoint made = small_checkpoint(iteration, ranks);
    made.manifest.valid_loss = valid_loss;
    made.write(root_ / "run/checkpoints");
    return made;
  }

  TemporaryDirectory root_;
};

TEST_F(CheckpointVerbs, ListShowsEach) {
  write(100, 4.5);
  write(200, 4.25, 2);
  fs::remove(root_ / "run/checkpoints/iter_0000200/optimizer-00001-of-00002.safetensors");
  const VerbOutcome table = call(checkpoint, {"list", path("run")});
  EXPECT_EQ(table.code, 0);
  expect_in("4.5000", table.output);
  expect_in("incomplete  2 ranks", table.output);
  expect_in("iter_0000200: ", table.output);
  expect_in("the file optimizer-00001-of-00002.safetensors is missing", table.output);
  const Json list = parse_json(call(checkpoint, {"list", path("run"), "--json"}).output, "output");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["iteration"], 200);
  EXPECT_EQ(list[0]["state"], "incomplete");
  EXPECT_EQ(list[1]["state"], "good");
  EXPECT_EQ(list[1]["samples"], 800);
  EXPECT_EQ(list[1]["loss"], 3.5);
  EXPECT_EQ(list[1]["valid_loss"], 4.5);
  EXPECT_EQ(list[1]["layout"], "1 ranks");
  EXPECT_GT(list[1]["age"], 1'000'000);
}

TEST_F(CheckpointVerbs, VerifyReadsTheNewestOrAll) {
  write(100, 4);
  write(200, 4);
  damage(root_ / "run/checkpoints/iter_0000100/weights-00000-of-00001.safetensors");
  const VerbOutcome newest = call(checkpoint, {"verify", path("run")});
  EXPECT_EQ(newest.code, 0);
  expect_in("iter_0000200   ok", newest.output);
  const VerbOutcome all = call(checkpoint, {"verify", path("run"), "--all"});
  EXPECT_EQ(all.code, 3);
  expect_in("iter_0000100   damaged", all.output);
  expect_in("weights-00000-of-00001.safetensors is damaged", all.output);
  expect_in("1 of 2 damaged", all.output);
  const VerbOutcome one = call(checkpoint, {"verify", path("run/checkpoints/iter_0000100")});
  EXPECT_EQ(one.code, 3);
}

TEST_F(CheckpointVerbs, PruneKeepsWhatTheRuleKeeps) {
  for (const int64_t iteration : {100, 200, 300, 400, 500})
    write(iteration, iteration == 200 ? 1.0 : 4.0);
  const fs::path folder = root_ / "run/checkpoints";
  const VerbOutcome dry_run = call(checkpoint, {"prune", path("run"), "--keep", "1", "--keep-every",
                                                "300", "--keep-best", "1", "--dry-run"});
  expect_in("would remove", dry_run.output);
  expect_in("2 of 5 checkpoints would go", dry_run.output);
  EXPECT_EQ(iterations(folder), (Iterations{100, 200, 300, 400, 500}));
  const VerbOutcome done = call(
      checkpoint, {"prune", path("run"), "--keep", "1", "--keep-every", "300", "--keep-best", "1"});
  expect_in("iter_0000400, ", done.output);
  expect_in("2 of 5 checkpoints removed", done.output);
  EXPECT_EQ(iterations(folder), (Iterations{200, 300, 500}));
}

TEST_F(CheckpointVerbs, PruneNeverRemovesTheNewestGoodOne) {
  write(100, 4);
  write(200, 4);
  write(300, 4);
  const fs::path folder = root_ / "run/checkpoints";
  fs::create_directory(folder / "release");
  fs::remove(folder / "iter_0000300/config.toml");
  // The damaged one is newer, yet it does not count among those that are kept.
  const VerbOutcome first = call(checkpoint, {"prune", path("run"), "--keep", "1"});
  expect_in("2 cannot be used and stayed", first.output);  // and release, which is empty
  EXPECT_EQ(iterations(folder), (Iterations{0, 200, 300}));
  const VerbOutcome second = call(checkpoint, {"prune", path("run"), "--keep", "1", "--damaged"});
  expect_in("damaged", second.output);
  EXPECT_EQ(iterations(folder), (Iterations{0, 200}));
  EXPECT_TRUE(fs::exists(folder / "release"));
}

TEST_F(CheckpointVerbs, PruneWantsARuleAndAFolder) {
  write(100, 4);
  expect_error(ErrorKind::Usage, "--keep is missing",
               [&] { call(checkpoint, {"prune", path("run")}); });
  expect_error(ErrorKind::Usage, "--keep",
               [&] { call(checkpoint, {"prune", path("run"), "--keep", "0"}); });
  expect_error(ErrorKind::Usage, "is one checkpoint", [&] {
    call(checkpoint, {"prune", path("run/checkpoints/iter_0000100"), "--keep", "1"});
  });
}

TEST_F(CheckpointVerbs, ExportAndDiffAgree) {
  write(100, 4, 3);
  const VerbOutcome done =
      call(checkpoint, {"export", path("run"), path("all.safetensors"), "--optimizer"});
  expect_in("12 tensors, ", done.output);
  const VerbOutcome same =
      call(diff, {path("run"), path("all.safetensors"), "--optimizer", "--all"});
  EXPECT_EQ(same.code, 0);
  expect_in("12 tensors are equal", same.output);
  expect_in("equal bit for bit", same.output);
  call(checkpoint, {"export", path("run"), path("folder"), "--file-bytes", "100"});
  EXPECT_EQ(call(diff, {path("folder"), path("run")}).code, 0);
}

TEST_F(CheckpointVerbs, DiffSaysWhatDiffers) {
  SmallCheckpoint a = small_checkpoint(100, 1), b = small_checkpoint(200, 2);
  b.tensor("layers.0.mlp.up.weight").values[9] += 1;
  b.tensor("layers.0.norm1.weight/adam.v").values[0] += 1;
  b.manifest.config["model.width"] = "8";
  b.manifest.config["new.field"] = "true";
  a.write(root_ / "a");
  b.write(root_ / "b");
  const VerbOutcome weights = call(diff, {path("a"), path("b")});
  EXPECT_EQ(weights.code, 1);
  expect_in("layers.0.mlp.up.weight   relative ", weights.output);
  expect_in("1 of 24 elements, the first at 2, 1", weights.output);
  expect_in("2 tensors are equal, 0 differ within the tolerance, 1 beyond it", weights.output);
  expect_in("iteration: 100 -> 200", weights.output);
  expect_in("update step: 100 -> 200", weights.output);
  expect_in("model.width: 4 -> 8", weights.output);
  expect_in("new.field: none -> true", weights.output);
  EXPECT_EQ(weights.output.find("seed"), std::string::npos);
  expect_in("2 beyond it", call(diff, {path("a"), path("b"), "--optimizer"}).output);
  const VerbOutcome close = call(diff, {path("a"), path("b"), "--tolerance", "0.5"});
  EXPECT_EQ(close.code, 0);
  expect_in("within the tolerance", close.output);
  EXPECT_EQ(call(diff, {path("a"), path("a")}).code, 0);
}

TEST_F(CheckpointVerbs, DiffNamesWhatOneLacks) {
  small_checkpoint(100, 1, true).write(root_ / "a");
  small_checkpoint(100, 1, false).write(root_ / "b");
  EXPECT_EQ(call(diff, {path("a"), path("b")}).code, 0);
  const VerbOutcome all = call(diff, {path("a"), path("b"), "--optimizer"});
  EXPECT_EQ(all.code, 1);
  expect_in("only in A: layers.0.norm1.weight/adam.m f32 [4]", all.output);
  expect_in("9 are in one only", all.output);
}

TEST_F(CheckpointVerbs, InspectShowsWhatACheckpointHolds) {
  SmallCheckpoint made = small_checkpoint(100, 2);
  made.manifest.data_position = 900;
  made.manifest.skipped = {{10, 20}};
  made.manifest.config["model.norm"] = "\"layernorm\"";
  made.manifest.history.push_back({.after_iteration = 50,
                                   .time = 1'700'000'000,
                                   .program = "bevatron 0.2",
                                   .layout = "tp2",
                                   .changes = {"optim.lr 0.1 -> 0.2"}});
  made.write(root_ / "run/checkpoints");
  const std::string output = call(inspect, {path("run/checkpoints/iter_0000100")}).output;
  expect_in("800 consumed, 800 by the schedule of the learning rate, the next is 900", output);
  expect_in("samples 10 to 19", output);
  expect_in("parameters    60", output);
  expect_in("adam.m        240 B in 3 tensors (3 f32)", output);
  expect_in("weights       120 B in 3 tensors (3 bf16)", output);
  expect_in("optimizer-00001-of-00002.safetensors", output);
  expect_in("after iteration 50, 2023-11-14 22:13:20 UTC, bevatron 0.2, tp2", output);
  expect_in("optim.lr 0.1 -> 0.2", output);
  expect_in("model.width = 4", output);
  EXPECT_EQ(output.find("model.norm ="), std::string::npos) << output;  // the default
  expect_in("not finite", output);
  const std::string table = output.substr(output.find("not finite"));
  // From 5/8 to 8/8 by eighths.
  expect_in(
      "layers.0.norm1.weight           bf16               [4]      2      1.6489       0.625      "
      "     1          0",
      table);
  const std::string folder = call(inspect, {path("run"), "--no-norms"}).output;
  expect_in("iter_0000100", folder);
  EXPECT_EQ(folder.find("not finite"), std::string::npos);
}

TEST_F(CheckpointVerbs, InspectTakesTheNewestGoodOne) {
  write(100, 4);
  write(200, 4);
  fs::remove(root_ / "run/checkpoints/iter_0000200/config.toml");
  const std::string output = call(inspect, {path("run")}).output;
  expect_in("iter_0000200: ", output);
  expect_in("iteration     100", output);
}

}  // namespace
}  // namespace bev::app
