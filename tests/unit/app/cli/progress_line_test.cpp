#include "app/cli/progress_line.h"

#include <gtest/gtest.h>

namespace bev::app {
namespace {

TEST(ProgressLine, HasShareRateAndTimeLeft) {
  EXPECT_EQ(progress_text("writing a", 1'000'000, 4'000'000, "bytes", 2),
            "writing a 25 %, 0.5 MB/s, 6.00 s left");
  EXPECT_EQ(progress_text("writing a", 0, 10, "bytes", 1), "writing a 0 %");
  EXPECT_EQ(progress_text("writing a", 20, 10, "words", 1),
            "writing a 100 %, 20 words/s, 0.00 s left");
  EXPECT_EQ(progress_text("writing a", 0, 0, "bytes", 0), "writing a 100 %");
}

TEST(ProgressLine, IsSilentWithoutATerminal) {
  testing::internal::CaptureStderr();
  {
    ProgressLine progress("writing", 10, "bytes");
    progress.update(5);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace bev::app
