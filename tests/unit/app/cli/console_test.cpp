#include "app/cli/console.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace bev::app {
namespace {

TEST(Voice, OfARankThatDoesNotPrintGoesIntoItsFile) {
  const test::TemporaryDirectory folder;
  const auto file = folder.path() / "logs" / "rank-00003.log";
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  {
    const Console voice(false, file);
    voice.log("news {}\n", 1);
    voice.print_record("a line");
  }
  Console(false, file).log_to_file("more\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(read_text(file), "news 1\na line\nmore\n");
}

TEST(Voice, OfARankThatPrintsGoesToBoth) {
  const test::TemporaryDirectory folder;
  const auto file = folder.path() / "rank.log";
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const Console voice(true, file);
  voice.log("news\n");
  voice.print_record("a line");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "a line\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "news\n");
  EXPECT_EQ(read_text(file), "news\na line\n");
}

}  // namespace
}  // namespace bev::app
