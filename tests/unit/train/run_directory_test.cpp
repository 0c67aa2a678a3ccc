#include "train/run_directory.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "convert/huggingface/huggingface.h"
#include "support/expect_error.h"
#include "support/small_run.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"

namespace bev {
namespace {

using test::expect_error;

void write(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

TEST(RunDirectory, CheckWritesNothing) {
  const test::TemporaryDirectory dir;
  const Config config = test::tiny_gpt();
  RunDirectory(dir / "run").check(config, 1000);
  RunDirectory(dir / "a/b/c").check(config, 1000);
  RunDirectory("relative").check(config, 1000);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

// Fails when a model that only checkpoints can hold is refused although there are some.
TEST(RunDirectory, AModelWithoutHuggingFacesFormat) {
  const test::TemporaryDirectory dir;
  Config config = test::tiny_bert();  // norms before attention and MLP
  const RunDirectory run(dir / "run");
  expect_error(ErrorKind::Usage, "set --save FOLDER", [&] { run.check(config, 1000); });
  config.checkpoint.save = (dir / "checkpoints").string();
  run.check(config, 1000);
}

TEST(RunDirectory, PrepareMakesTheFolder) {
  const test::TemporaryDirectory dir;
  const RunDirectory run(dir / "a/b");
  run.prepare("x = 1\n");
  EXPECT_EQ(read_text(run.config_file()), "x = 1\n");
  run.check(test::tiny_gpt(), 1000);  // a run may be repeated, even one killed this early
  run.prepare("x = 2\n");
  EXPECT_EQ(read_text(run.config_file()), "x = 2\n");
}

TEST(RunDirectory, FilesInItsPlace) {
  const test::TemporaryDirectory dir;
  const Config config = test::tiny_gpt();
  write(dir / "file", "x");
  for (const char* name : {"file", "file/run", "file/a/b"}) {
    const RunDirectory run(dir / name);
    expect_error(ErrorKind::Data, "not a folder", [&] { run.check(config, 1000); });
    expect_error(ErrorKind::Data, "cannot make the folder", [&] { run.prepare(""); });
  }
  EXPECT_EQ(read_text(dir / "file"), "x");
}

TEST(RunDirectory, ForeignFilesStay) {
  const test::TemporaryDirectory dir;
  const Config config = test::tiny_gpt();
  const RunDirectory run(dir / "run");
  std::filesystem::create_directories(run.model());
  run.check(config, 1000);
  write(run.model() / "thesis.txt", "precious");
  expect_error(ErrorKind::Data, "thesis.txt", [&] { run.check(config, 1000); });
  std::filesystem::remove_all(run.model());
  write(run.config_file(), "# mine");
  expect_error(ErrorKind::Data, "config.toml is not of a run", [&] { run.check(config, 1000); });
}

TEST(RunDirectory, NoRoomOnTheDisk) {
  const test::TemporaryDirectory dir;
  expect_error(ErrorKind::Data, "the disk has",
               [&] { RunDirectory(dir / "run").check(test::tiny_gpt(), size_t{1} << 60); });
}

TEST(RunDirectory, IsRecognised) {
  const test::TemporaryDirectory dir;
  EXPECT_FALSE(RunDirectory::is_run(dir / "none"));
  EXPECT_FALSE(RunDirectory::is_run(dir.path()));
  const RunDirectory run(dir.path());
  run.prepare("");
  EXPECT_FALSE(RunDirectory::is_run(dir.path()));
  test::SmallRun trained(test::tiny_gpt());
  save_huggingface(run.model(), trained.config, trained.assembly.params);
  EXPECT_TRUE(RunDirectory::is_run(dir.path()));
}

}  // namespace
}  // namespace bev
