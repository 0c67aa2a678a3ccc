#include "checkpoint/checkpoint_draft.h"

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

void put_file(const fs::path& path, const std::string& content) { std::ofstream(path) << content; }

TEST(CheckpointDraft, AppearsWithItsCommit) {
  const TemporaryDirectory root;
  const CheckpointFolder folder(root / "a/b");
  const CheckpointDraft draft(folder, 100);
  draft.start();
  put_file(draft.path() / "one", "1");
  EXPECT_TRUE(folder.list().empty());
  EXPECT_FALSE(fs::exists(folder.tracker()));
  draft.commit();
  ASSERT_EQ(folder.list().size(), 1u);
  EXPECT_EQ(folder.list().front().path, folder.place_of(100));
  EXPECT_EQ(read_text(folder.place_of(100) / "one"), "1");
  EXPECT_EQ(read_text(folder.tracker()), "100");
  EXPECT_FALSE(fs::exists(draft.path()));
  const CheckpointDraft release(folder, -1);
  release.start();
  release.commit();
  EXPECT_EQ(read_text(folder.tracker()), "release");
}

TEST(CheckpointDraft, StartsEmptyAndCanBeDropped) {
  const TemporaryDirectory root;
  const CheckpointFolder folder(root.path());
  const CheckpointDraft draft(folder, 100);
  draft.start();
  put_file(draft.path() / "old", "1");
  draft.start();
  EXPECT_TRUE(fs::is_empty(draft.path()));
  draft.drop();
  EXPECT_FALSE(fs::exists(draft.path()));
  draft.drop();
  expect_error(ErrorKind::Data, "iter_0000100", [&] { draft.commit(); });
  put_file(root / "file", "");
  expect_error(ErrorKind::Data, "cannot make the folder",
               [&] { CheckpointDraft(CheckpointFolder(root / "file"), 1).start(); });
}

TEST(CheckpointDraft, ReplacesAnOlderOne) {
  const TemporaryDirectory root;
  const CheckpointFolder folder(root.path());
  const CheckpointDraft draft(folder, 100);
  for (const char* content : {"first", "second"}) {
    draft.start();
    put_file(draft.path() / content, content);
    draft.commit();
  }
  EXPECT_TRUE(fs::exists(folder.place_of(100) / "second"));
  EXPECT_FALSE(fs::exists(folder.place_of(100) / "first"));
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(root.path())) ++entries;
  EXPECT_EQ(entries, 2u);  // the checkpoint and the tracker
  fs::remove_all(folder.place_of(100));
  put_file(folder.place_of(100), "a file in its place");
  draft.start();
  expect_error(ErrorKind::Data, "cannot write", [&] { draft.commit(); });
}

}  // namespace
}  // namespace bev
