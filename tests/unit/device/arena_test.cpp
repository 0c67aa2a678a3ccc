#include <gtest/gtest.h>

#include "base/error.h"
#include "device/memory.h"
#include "ops/make_device.h"

namespace bev {
namespace {

TEST(Arena, IsAStackWithAPeak) {
  const auto device = make_device(DeviceKind::Cpu, 1);
  Arena arena(*device, 4 * kArenaAlignment, "test");
  const Tensor a = arena.allocate({3}, DType::f32, "a");
  {
    ArenaScope scope(arena);
    const Tensor b = arena.allocate({65}, DType::f32, "b");
    EXPECT_EQ(static_cast<size_t>(b.data - a.data), kArenaAlignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data) % 64, 0u);
  }
  EXPECT_EQ(arena.mark(), kArenaAlignment);
  EXPECT_EQ(arena.peak(), 3 * kArenaAlignment);
}

TEST(Arena, RefusesOneByteTooMany) {
  const auto device = make_device(DeviceKind::Cpu, 1);
  Arena arena(*device, kArenaAlignment, "small");
  arena.allocate({static_cast<int64_t>(kArenaAlignment)}, DType::u8, "fits");
  EXPECT_THROW(arena.allocate({1}, DType::u8, "one more"), Error);
}

TEST(Arena, PlanningKnowsWhoWasAliveAtThePeak) {
  const auto device = make_null_device(DeviceKind::Cpu, 1);
  Arena arena(*device, 0, "plan");
  arena.allocate({10}, DType::f32, "a");
  {
    ArenaScope scope(arena);
    arena.allocate({1000}, DType::f32, "b");
    arena.allocate({1000}, DType::f32, "c");
  }
  arena.allocate({10}, DType::f32, "d");
  ASSERT_EQ(arena.peak_contents().size(), 3u);
  EXPECT_EQ(arena.peak_contents()[2].first, "c");
  arena.allocate({100000}, DType::f32, "e");
  ASSERT_EQ(arena.peak_contents().size(), 3u);
  EXPECT_EQ(arena.peak_contents()[1].first, "d");
  EXPECT_EQ(arena.peak_contents()[2].first, "e");
}

TEST(Buffer, IsCountedByPurpose) {
  const auto device = make_device(DeviceKind::Reference, 1);
  {
    const Buffer a(*device, 100, "x"), b(*device, 50, "x"), c(*device, 7, "y");
    EXPECT_EQ(device->allocated_bytes(), 157u);
    EXPECT_EQ(device->memory()[0].bytes, 150u);
  }
  EXPECT_EQ(device->allocated_bytes(), 0u);
}

}  // namespace
}  // namespace bev
