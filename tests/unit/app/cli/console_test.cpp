#include "app/cli/console.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace bev::app {
namespace {

TEST(Console, OfARankThatDoesNotPrintGoesIntoItsFile) {
  const test::TemporaryDirectory folder;
  const auto file = folder.path() / "logs" / "rank-00003.log";
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  {
    const Console console(false, file);
    console.log("news {}\n", 1);
    console.print_record("a line");
  }
  Console(false, file).log_to_file("more\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(read_text(file), "news 1\na line\nmore\n");
}

TEST(Console, OfARankThatPrintsGoesToBoth) {
  const test::TemporaryDirectory folder;
  const auto file = folder.path() / "rank.log";
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const Console console(true, file);
  console.log("news\n");
  console.print_record("a line");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "a line\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "news\n");
  EXPECT_EQ(read_text(file), "news\na line\n");
}

}  // namespace
}  // namespace bev::app
