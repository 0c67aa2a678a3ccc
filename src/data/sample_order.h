// The order of samples as arithmetic: a keyed permutation of [0, count) that needs no table, so
// that any place of any epoch is found at once and every rank finds the same.
#pragma once

#include <cstdint>

namespace bev {

// A Feistel network on the smallest square of bits that holds `count`, walked until the result is
// in range (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). Less than four walks
// on average.
class KeyedPermutation {
 public:
  // REQUIRES: 1 <= count <= 2^62.
  KeyedPermutation(int64_t count, uint64_t key);

  // A bijection of [0, count). REQUIRES: 0 <= i < count.
  int64_t operator()(int64_t i) const;

  int64_t count() const { return count_; }

 private:
  uint64_t encrypt(uint64_t value) const;

  int64_t count_;
  uint64_t key_;
  int half_bits_;
};

// Sample `index` of an endless training: epoch after epoch, each in an order of its own, each
// window once per epoch.
struct OrderedSample {
  int64_t epoch, window;
};
OrderedSample ordered_sample(int64_t index, int64_t windows, uint64_t seed);

}  // namespace bev
