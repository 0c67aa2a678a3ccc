#include "checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

namespace fs = std::filesystem;

using test::expect_error;
using test::TemporaryDirectory;

void put_text(const fs::path& path, const std::string& content) { std::ofstream(path) << content; }

std::vector<std::string> names(const std::vector<CheckpointPlace>& places) {
  std::vector<std::string> result;
  for (const CheckpointPlace& place : places) result.push_back(place.path.filename().string());
  return result;
}

using Names = std::vector<std::string>;

TEST(CheckpointFolder, NamesAreThoseOfMegatron) {
  const CheckpointFolder folder("/run");
  EXPECT_EQ(folder.place_of(100), "/run/iter_0000100");
  EXPECT_EQ(folder.place_of(123456789), "/run/iter_123456789");
  EXPECT_EQ(folder.place_of(-1), "/run/release");
  EXPECT_EQ(folder.tracker(), "/run/latest_checkpointed_iteration.txt");
}

TEST(CheckpointFolder, ListsByIteration) {
  const TemporaryDirectory root;
  for (const char* name :
       {"iter_0000100", "iter_0000020", "iter_10000000", "iter_9999999", "release", "iter_0000000"})
    fs::create_directory(root / name);
  // None of these is a checkpoint.
  for (const char* name :
       {"iter_100", "iter_00000100", "iter_-000001", "iter_000010x", "iter_",
        ".iter_0000300.writing", "logs", "iter_-000000", "iter_99999999999999999999"})
    fs::create_directory(root / name);
  put_text(root / "iter_0000400", "a file");
  const std::vector<CheckpointPlace> places = CheckpointFolder(root.path()).list();
  EXPECT_EQ(names(places), (Names{"release", "iter_0000000", "iter_0000020", "iter_0000100",
                                  "iter_9999999", "iter_10000000"}));
  EXPECT_EQ(places[2].iteration, 20);
  for (const CheckpointPlace& place : places) {
    if (place.path.filename() == "release") continue;
    EXPECT_EQ(CheckpointFolder(root.path()).place_of(place.iteration), place.path);
  }
  EXPECT_TRUE(CheckpointFolder(root / "none").list().empty());
}

TEST(CheckpointFolder, RemovesWholly) {
  const TemporaryDirectory root;
  const CheckpointFolder folder(root.path());
  for (const int64_t iteration : {-1, 0, 100}) {
    fs::create_directory(folder.place_of(iteration));
    put_text(folder.place_of(iteration) / "one", "1");
  }
  folder.remove(100);
  EXPECT_EQ(names(folder.list()), (Names{"release", "iter_0000000"}));
  EXPECT_FALSE(fs::exists(root / ".iter_0000100.removing"));
  expect_error(ErrorKind::Data, "cannot remove", [&] { folder.remove(100); });
  folder.remove(-1);
  EXPECT_EQ(names(folder.list()), Names{"iter_0000000"});
}

TEST(CheckpointFolder, ClearsWhatKilledRunsLeft) {
  const TemporaryDirectory root;
  const CheckpointFolder folder(root.path());
  for (const char* name :
       {".iter_0000100.writing", ".iter_0000200.removing", ".release.writing", "iter_0000300",
        ".iter_0000300.replaced", ".git", ".other.writing", ".iter_1.writing"}) {
    fs::create_directory(root / name);
    put_text(root / name / "content", "1");
  }
  folder.clear_leftovers();
  for (const char* name : {".iter_0000100.writing", ".iter_0000200.removing", ".release.writing",
                           ".iter_0000300.replaced"})
    EXPECT_FALSE(fs::exists(root / name)) << name;
  for (const char* name : {"iter_0000300", ".git", ".other.writing", ".iter_1.writing"})
    EXPECT_TRUE(fs::exists(root / name / "content")) << name;
  CheckpointFolder(root / "none").clear_leftovers();
}

// A run that was killed after the old checkpoint had stepped aside and before the new one stood.
TEST(CheckpointFolder, WhatSteppedAsideReturns) {
  const TemporaryDirectory root;
  const CheckpointFolder folder(root.path());
  fs::create_directory(root / ".iter_0000100.replaced");
  put_text(root / ".iter_0000100.replaced/one", "old");
  fs::create_directory(root / ".iter_0000100.writing");
  folder.clear_leftovers();
  EXPECT_EQ(read_text(folder.place_of(100) / "one"), "old");
  EXPECT_FALSE(fs::exists(root / ".iter_0000100.replaced"));
  EXPECT_FALSE(fs::exists(root / ".iter_0000100.writing"));
}

TEST(CheckpointFolder, UsersMayNameARunAFolderOrOne) {
  const TemporaryDirectory root;
  fs::create_directories(root / "run/checkpoints/iter_0000100");
  fs::create_directories(root / "run/checkpoints/iter_0000200");
  fs::create_directories(root / "run/checkpoints/release");
  const Names newest_first{"iter_0000200", "iter_0000100", "release"};
  EXPECT_EQ(names(find_checkpoints(root / "run")), newest_first);
  EXPECT_EQ(names(find_checkpoints(root / "run/")), newest_first);
  EXPECT_EQ(names(find_checkpoints(root / "run/checkpoints")), newest_first);
  for (const char* one : {"run/checkpoints/iter_0000100", "run/checkpoints/iter_0000100/"}) {
    EXPECT_TRUE(is_checkpoint(root / one));
    EXPECT_EQ(names(find_checkpoints(root / one)), Names{"iter_0000100"});
    EXPECT_EQ(find_checkpoints(root / one).front().iteration, 100);
  }
  // By its manifest, under any name.
  fs::create_directory(root / "mine");
  EXPECT_FALSE(is_checkpoint(root / "mine"));
  put_text(root / "mine/manifest.json", "{}");
  EXPECT_TRUE(is_checkpoint(root / "mine"));
  EXPECT_EQ(names(find_checkpoints(root / "mine")), Names{"mine"});
  EXPECT_TRUE(find_checkpoints(root / "none").empty());
  EXPECT_TRUE(find_checkpoints(root.path()).empty());
}

TEST(CheckpointFolder, KnowsTheRoomOnTheDisk) {
  const TemporaryDirectory root;
  const std::optional<double> here = free_bytes(root.path());
  ASSERT_TRUE(here);
  EXPECT_GT(*here, 0);
  EXPECT_TRUE(free_bytes(root / "not/yet/there"));
}

}  // namespace
}  // namespace bev
