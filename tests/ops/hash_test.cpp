// The hash of a tensor's bits. Every test names the fault that makes it fail.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "device/memory.h"
#include "ops/make_device.h"
#include "ops/reduce.h"

namespace bev::test {
namespace {

// The hash of `bytes` as a tensor of a type, added to `before`.
int64_t hash_on(Device& device, const std::vector<std::byte>& bytes, DType dtype, int64_t before) {
  const Buffer data(device, std::max<size_t>(1, bytes.size()), "data"),
      sum(device, sizeof before, "sum");
  if (!bytes.empty()) device.upload(bytes.data(), data.data(), bytes.size());
  device.upload(&before, sum.data(), sizeof before);
  Arena none(device, 0, "none");
  Exec ex{device, device.compute_stream(), none, none, none};
  const auto count = static_cast<int64_t>(bytes.size() / size_of(dtype));
  ops::hash_bits(ex, {.x = tensor_over(data.data(), dtype, {count}),
                      .out = tensor_over(sum.data(), DType::i64, {1})});
  ex.stream.synchronize();
  int64_t hash = 0;
  device.download(sum.data(), &hash, sizeof hash);
  return hash;
}

int64_t hash_by_hand(const std::vector<std::byte>& bytes, DType dtype) {
  const size_t size = size_of(dtype);
  uint64_t hash = 0;
  for (size_t i = 0; i < bytes.size() / size; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * size, size);
    hash += hash_of_element(bits, i);
  }
  return static_cast<int64_t>(hash);
}

std::vector<std::byte> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void expect_agrees(DeviceKind kind) {
  const auto device = make_device(kind, kind == DeviceKind::Cpu ? 3 : 1);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8})
    for (const size_t count : {0, 1, 2, 31, 32, 33, 63, 64, 65, 1000, 70001}) {
      const auto bytes = random_bytes(count * size_of(dtype), static_cast<uint32_t>(count) + 1);
      EXPECT_EQ(hash_on(*device, bytes, dtype, 0), hash_by_hand(bytes, dtype))
          << name_of(dtype) << " " << count;
    }
  // Fails when what was there is overwritten.
  const auto bytes = random_bytes(64, 9);
  EXPECT_EQ(hash_on(*device, bytes, DType::f32, 5), hash_by_hand(bytes, DType::f32) + 5);
}

// Fails when a tail is left out, an element is counted with another place, or its upper bits hold
// something.
TEST(HashBits, ReferenceAgrees) { expect_agrees(DeviceKind::Reference); }
TEST(HashBits, CpuAgrees) { expect_agrees(DeviceKind::Cpu); }
TEST(HashBits, CudaAgrees) {
  if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  expect_agrees(DeviceKind::Cuda);
}

// Fails when a bit, or the order, has no part in it.
TEST(HashBits, EveryBitAndPlaceCounts) {
  const auto bytes = random_bytes(40, 4);
  const int64_t hash = hash_by_hand(bytes, DType::f32);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_NE(hash_by_hand(flipped, DType::f32), hash) << bit;
  }
  auto exchanged = bytes;
  std::swap_ranges(exchanged.begin(), exchanged.begin() + 4, exchanged.begin() + 4);
  EXPECT_NE(hash_by_hand(exchanged, DType::f32), hash);
}

}  // namespace
}  // namespace bev::test
