#include "base/float_types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace bev {
namespace {

// Every value of the short types survives the way through float.
TEST(FloatTypes, RoundTripAllBitPatterns) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    bf16 b;
    b.bits = static_cast<uint16_t>(bits);
    f16 h;
    h.bits = static_cast<uint16_t>(bits);
    const auto fb = static_cast<float>(b);
    const auto fh = static_cast<float>(h);
    if (std::isnan(fb)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(bf16(fb))));
    } else {
      EXPECT_EQ(bf16(fb).bits, b.bits);
    }
    if (std::isnan(fh)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(f16(fh))));
    } else {
      EXPECT_EQ(f16(fh).bits, h.bits);
    }
  }
}

TEST(FloatTypes, RoundToNearestEven) {
  EXPECT_EQ(static_cast<float>(bf16(1.00390625f)), 1.0f);       // halfway, down to even
  EXPECT_EQ(static_cast<float>(bf16(1.01171875f)), 1.015625f);  // halfway, up to even
  EXPECT_EQ(static_cast<float>(bf16(1.00390637f)), 1.0078125f);
  EXPECT_EQ(static_cast<float>(f16(2049.0f)), 2048.0f);
  EXPECT_EQ(static_cast<float>(f16(2051.0f)), 2052.0f);
  EXPECT_EQ(static_cast<float>(f16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(f16(65520.0f))));
  EXPECT_EQ(static_cast<float>(f16(0x1p-25f)), 0.0f);  // halfway to the least subnormal
  EXPECT_EQ(static_cast<float>(f16(0x1.8p-25f)), 0x1p-24f);
  EXPECT_TRUE(std::isinf(static_cast<float>(bf16(std::numeric_limits<float>::max()))));
}

}  // namespace
}  // namespace bev
