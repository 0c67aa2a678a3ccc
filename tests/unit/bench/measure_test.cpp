#include "bench/measure.h"

#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/make_device.h"
#include "ops/reduce.h"

namespace bev {
namespace {

TEST(Measure, MedianAndQuartiles) {
  const Timing t = summarize({5, 1, 4, 2, 3});
  EXPECT_EQ(t.median, 3);
  EXPECT_EQ(t.low, 2);
  EXPECT_EQ(t.high, 4);
  EXPECT_EQ(t.best, 1);
  EXPECT_EQ(t.runs, 5);
}

TEST(Measure, WarmsUpAndRunsOftenEnough) {
  int calls = 0;
  const Timing t = measure([&] { ++calls; }, 0, 7);
  EXPECT_EQ(t.runs, 7);
  EXPECT_EQ(t.calls, 1);
  EXPECT_EQ(calls, 8);
}

TEST(Measure, SynchronousDevicesAreMeasuredCallByCall) {
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 1);
  int calls = 0;
  EXPECT_EQ(measure_on(*device, [&] { ++calls; }, 0, 5).calls, 1);
  EXPECT_EQ(calls, 6);
}

TEST(Measure, CudaRunsAreFinishedWork) {
  const std::string why = why_no_cuda();
  if (!why.empty()) GTEST_SKIP() << why;
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cuda, 0);
  constexpr int64_t kElements = int64_t{64} << 20;
  const auto work = [&](OpRig& rig) {
    const Tensor from = rig.make_varied({kElements}, DType::f32);
    const Tensor to = rig.make({kElements}, DType::f32);
    return [&rig, from, to] { ops::copy(rig.exec(), {.in = from, .out = to}); };
  };
  OpRig rig(*device, rig_sizes(*device, [&](OpRig& dry_run) { work(dry_run)(); }));
  const Timing t = measure_on(*device, work(rig), 0.1, 5);
  // No GPU moves 100 TB/s; a measurement of launches alone would say so.
  EXPECT_GT(t.median, 8.0 * kElements / 100e12);
  EXPECT_GT(t.calls, 1);
}

TEST(OpRig, IsAsLargeAsTheWorkNeeds) {
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 1);
  const auto work = [](OpRig& rig) {
    const Tensor x = rig.make_varied({1000, 1100}, DType::f32);
    const Tensor sum = rig.make({1}, DType::f64);
    ops::fill(rig.exec(), {.out = sum, .value = 0});
    ops::squared_norm(rig.exec(), {.x = x, .out = sum});
    return sum;
  };
  const RigSizes sizes = rig_sizes(*device, [&](OpRig& dry_run) { work(dry_run); });
  EXPECT_EQ(sizes.operands, 1000u * 1100 * 4 + 256 + (256 - 1000 * 1100 * 4 % 256) % 256);
  OpRig rig(*device, sizes);
  double sum = 0;
  device->download(work(rig).data, &sum, sizeof(sum));
  EXPECT_NEAR(sum / 1.1e6, 1, 0.01);  // the variance of what operands are filled with
}

}  // namespace
}  // namespace bev
