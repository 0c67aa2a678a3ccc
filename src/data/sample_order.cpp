#include "data/sample_order.h"

#include "base/check.h"
#include "base/philox.h"

namespace bev {

namespace {

constexpr int kRounds = 6;

}  // namespace

KeyedPermutation::KeyedPermutation(int64_t count, uint64_t key)
    : count_(count), key_(key), half_bits_(1) {
  BEV_CHECK(count >= 1 && count <= int64_t{1} << 62, Internal, "a permutation of {} things", count);
  while ((uint64_t{1} << (2 * half_bits_)) < static_cast<uint64_t>(count)) ++half_bits_;
}

uint64_t KeyedPermutation::encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t mixed = left ^ (mix_key(mix_key(key_, round), right) & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

int64_t KeyedPermutation::operator()(int64_t i) const {
  auto value = static_cast<uint64_t>(i);
  do {
    value = encrypt(value);
  } while (value >= static_cast<uint64_t>(count_));
  return static_cast<int64_t>(value);
}

OrderedSample ordered_sample(int64_t index, int64_t windows, uint64_t seed) {
  const int64_t epoch = index / windows;
  const uint64_t key = mix_key(mix_key(seed, "sample order"), static_cast<uint64_t>(epoch));
  return {epoch, KeyedPermutation(windows, key)(index % windows)};
}

}  // namespace bev
