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
    const Voice voice(false, file);
    voice.tell("news {}\n", 1);
    voice.record("a line");
  }
  Voice(false, file).keep("more\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(read_text(file), "news 1\na line\nmore\n");
}

TEST(Voice, OfARankThatPrintsGoesToBoth) {
  const test::TemporaryDirectory folder;
  const auto file = folder.path() / "rank.log";
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const Voice voice(true, file);
  voice.tell("news\n");
  voice.record("a line");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "a line\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "news\n");
  EXPECT_EQ(read_text(file), "news\na line\n");
}

}  // namespace
}  // namespace bev::app
