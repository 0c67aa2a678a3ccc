// NumPy's RandomState: the Mersenne Twister and the rules by which its numbers become choices, bit
// for bit. Only for orders that others have made; everything of our own is counter-based
// (base/philox.h).
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <utility>

namespace bev {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : engine_(seed) {}

  // In [0, 1), from 53 bits.
  double random();

  // In [low, high). REQUIRES: low < high.
  int64_t integer(int64_t low, int64_t high);

  // A permutation of the elements; works on everything with size() and [].
  template <class Elements>
  void shuffle(Elements& elements) {
    for (size_t i = elements.size(); i-- > 1;) std::swap(elements[i], elements[up_to(i)]);
  }

 private:
  // In [0, most]: as many bits as `most` has, drawn again while they are above it.
  uint64_t up_to(uint64_t most);
  uint64_t bits32() { return engine_(); }

  std::mt19937 engine_;
};

inline double NumpyRandom::random() {
  const uint64_t high = bits32() >> 5, low = bits32() >> 6;
  return static_cast<double>((high << 26) + low) * 0x1p-53;
}

inline int64_t NumpyRandom::integer(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(up_to(static_cast<uint64_t>(high - low - 1)));
}

inline uint64_t NumpyRandom::up_to(uint64_t most) {
  if (most == 0) return 0;  // a single choice is not drawn
  const uint64_t mask = std::bit_ceil(most + 1) - 1;
  uint64_t value = 0;
  do {
    value = bits32();
    if (most > 0xFFFFFFFF) value = value << 32 | bits32();
    value &= mask;
  } while (value > most);
  return value;
}

}  // namespace bev
