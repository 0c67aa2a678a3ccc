#include "app/progress.h"

#include <gtest/gtest.h>

namespace bev::app {
namespace {

TEST(Progress, LineHasShareRateAndTimeLeft) {
  EXPECT_EQ(progress_line("writing a", 1024.0 * 1024, 4.0 * 1024 * 1024, 2),
            "writing a: 25 %, 512.00 KiB/s, 6.00 s left");
  EXPECT_EQ(progress_line("writing a", 0, 10, 1), "writing a: 0 %");
  EXPECT_EQ(progress_line("writing a", 20, 10, 1), "writing a: 100 %, 20 B/s, 0.00 s left");
  EXPECT_EQ(progress_line("writing a", 0, 0, 0), "writing a: 100 %");
}

TEST(Progress, IsSilentWithoutATerminal) {
  testing::internal::CaptureStderr();
  {
    Progress progress("writing", 10);
    progress.at(5);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace bev::app
