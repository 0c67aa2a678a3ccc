#include "device/gpu_peaks.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

TEST(GpuPeaks, ByTheNamesDriversGive) {
  EXPECT_EQ(dense_bf16_peak("NVIDIA H200"), 989e12);
  EXPECT_EQ(dense_bf16_peak("NVIDIA H100 80GB HBM3"), 989e12);
  EXPECT_EQ(dense_bf16_peak("NVIDIA H100 PCIe"), 756e12);
  EXPECT_EQ(dense_bf16_peak("NVIDIA H100 NVL"), 835e12);
  EXPECT_EQ(dense_bf16_peak("NVIDIA A100-SXM4-80GB"), 312e12);
  EXPECT_EQ(dense_bf16_peak("NVIDIA B200"), 2250e12);
  EXPECT_EQ(dense_bf16_peak("NVIDIA L40S"), 362e12);
  EXPECT_EQ(dense_bf16_peak("NVIDIA L4"), 121e12);
  EXPECT_EQ(dense_bf16_peak("NVIDIA GeForce RTX 4090"), 165e12);
}

TEST(GpuPeaks, UnknownNamesHaveNone) {
  EXPECT_EQ(dense_bf16_peak("NVIDIA GB203"), 0);
  EXPECT_EQ(dense_bf16_peak("NVIDIA A1000"), 0);
  EXPECT_EQ(dense_bf16_peak(""), 0);
}

}  // namespace
}  // namespace bev
