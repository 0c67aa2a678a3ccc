#include "base/process.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

TEST(Process, HasMemory) {
  const double bytes = resident_bytes();
  EXPECT_GT(bytes, 1e5);
  EXPECT_LT(bytes, 1e12);
}

}  // namespace
}  // namespace bev
