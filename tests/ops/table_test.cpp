// The op tables and the devices they come with. Every test names the fault that makes it fail.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/error.h"
#include "device/thread_pool.h"
#include "ops/make_device.h"
#include "ops/op_table.h"

namespace bev::test {
namespace {

constexpr size_t kOps = sizeof(OpTable) / sizeof(void*);

void expect_full(const char* name, const OpTable& table) {
  std::array<void*, kOps> entries;
  static_assert(sizeof entries == sizeof table);
  std::memcpy(entries.data(), &table, sizeof table);
  for (size_t i = 0; i < kOps; ++i) EXPECT_NE(entries[i], nullptr) << name << " op " << i;
}

// Fails when an op is added to the table and a backend leaves it out.
TEST(OpTable, ReferenceHasEveryOp) { expect_full("reference", kReferenceOps); }
TEST(OpTable, NullHasEveryOp) { expect_full("null", kNullOps); }
TEST(OpTable, CpuHasEveryOp) { expect_full("cpu", kCpuOps); }

ErrorKind kind_of_failure(DeviceKind kind, int threads) {
  try {
    make_device(kind, threads);
  } catch (const Error& error) {
    return error.kind;
  }
  return ErrorKind::Internal;
}

// Fails when a device that cannot be had is not an error of the machine or the user.
TEST(MakeDevice, RefusesWhatItHasNot) {
  if (!why_no_cuda().empty()) {
    EXPECT_EQ(kind_of_failure(DeviceKind::Cuda, 1), ErrorKind::Device);
  }
  EXPECT_EQ(kind_of_failure(DeviceKind::Null, 1), ErrorKind::Usage);
  EXPECT_EQ(kind_of_failure(DeviceKind::Cpu, -1), ErrorKind::Usage);
}

// Fails when the plan forgets the workspace that the device will hold.
TEST(MakeDevice, NullDevicePlansTheWorkspace) {
  for (const DeviceKind kind : {DeviceKind::Reference, DeviceKind::Cpu}) {
    const auto real = make_device(kind, 3);
    const auto planned = make_null_device(kind, 3);
    EXPECT_EQ(planned->kind(), DeviceKind::Null);
    EXPECT_EQ(planned->allocated_bytes(), real->allocated_bytes());
  }
}

// Fails when 0 is taken literally, or the reference gets threads it does not use.
TEST(MakeDevice, ChoosesThreads) {
  EXPECT_GE(usable_threads(), 1);
  const auto threads = [](DeviceKind kind, int asked) {
    const auto device = make_device(kind, asked);
    return static_cast<HostDevice&>(*device).threads().threads();
  };
  EXPECT_EQ(threads(DeviceKind::Cpu, 0), usable_threads());
  EXPECT_EQ(threads(DeviceKind::Cpu, 2), 2);
  EXPECT_EQ(threads(DeviceKind::Reference, 4), 1);
}

}  // namespace
}  // namespace bev::test
