#include "model/rope_table.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

TEST(RopeFrequencies, FallGeometrically) {
  const std::vector<double> f = rope_frequencies({.dim = 8});
  ASSERT_EQ(f.size(), 4u);
  EXPECT_DOUBLE_EQ(f[0], 1.0);
  EXPECT_NEAR(f[1], 0.1, 1e-15);
  EXPECT_NEAR(f[3], 0.001, 1e-17);
}

// Llama 3.1 (base 500000, 8192 original positions, factor 8, bands 1 and 4): wavelengths above 8192
// are stretched eightfold, below 2048 not at all.
TEST(RopeFrequencies, Llama3StretchesSlowWaves) {
  const RopeSpec plain{.dim = 128, .base = 500000};
  RopeSpec scaled = plain;
  scaled.scaling = RopeScaling::Llama3;
  const std::vector<double> a = rope_frequencies(plain), b = rope_frequencies(scaled);
  int kept = 0, stretched = 0, between = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double wavelength = 6.283185307179586 / a[i];
    if (wavelength < 2048) {
      EXPECT_DOUBLE_EQ(b[i], a[i]);
      ++kept;
    } else if (wavelength > 8192) {
      EXPECT_DOUBLE_EQ(b[i], a[i] / 8);
      ++stretched;
    } else {
      const double smooth = (8192 / wavelength - 1) / 3;
      EXPECT_NEAR(b[i], (1 - smooth) * a[i] / 8 + smooth * a[i], 1e-15);
      ++between;
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(stretched, 0);
  EXPECT_GT(between, 0);
}

}  // namespace
}  // namespace bev
