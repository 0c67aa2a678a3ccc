#include "checkpoint/checkpoint_survey.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/small_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

namespace fs = std::filesystem;

using test::expect_error;
using test::small_checkpoint;
using test::TemporaryDirectory;

TEST(CheckpointSurvey, TellsGoodFromBad) {
  const TemporaryDirectory root;
  small_checkpoint(100, 2).write(root.path());
  const fs::path second = small_checkpoint(200, 2).write(root.path());
  const fs::path third = small_checkpoint(300, 1).write(root.path());
  fs::remove(second / "weights-00001-of-00002.safetensors");
  fs::remove(third / "manifest.json");
  const std::vector<CheckpointInfo> all = survey(root.path());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name(), "iter_0000300");
  EXPECT_FALSE(all[0].is_good());
  EXPECT_FALSE(all[0].manifest);
  EXPECT_EQ(all[1].name(), "iter_0000200");
  EXPECT_FALSE(all[1].is_good());
  EXPECT_NE(all[1].problem.find("weights-00001-of-00002.safetensors"), std::string::npos);
  ASSERT_TRUE(all[1].manifest);
  EXPECT_EQ(all[1].manifest->iteration, 200);
  EXPECT_TRUE(all[2].is_good());
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(root / "iter_0000100"))
    bytes += entry.file_size();
  EXPECT_EQ(all[2].bytes, bytes);

  EXPECT_EQ(newest_good(root.path()).iteration, 100);
  EXPECT_EQ(newest_good(root / "iter_0000100").iteration, 100);
  expect_error(ErrorKind::Data, "weights-00001", [&] { newest_good(second); });
}

TEST(CheckpointSurvey, SaysWhyThereIsNone) {
  const TemporaryDirectory root;
  expect_error(ErrorKind::Data, "holds no checkpoints", [&] { survey(root.path()); });
  expect_error(ErrorKind::Data, "holds no checkpoints", [&] { newest_good(root / "none"); });
  for (const int64_t iteration : {100, 200})
    fs::remove(small_checkpoint(iteration, 1).write(root.path()) / "config.toml");
  expect_error(ErrorKind::Data, "none of 2 checkpoints can be used; of the newest",
               [&] { newest_good(root.path()); });
}

}  // namespace
}  // namespace bev
