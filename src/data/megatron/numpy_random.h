// NumPy's RandomState: the Mersenne Twister and the rules by which its numbers become choices, bit
// for bit.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <random>
#include <utility>

namespace bev {

// NumPy's rules over any generator of 32-bit numbers.
template <class Engine>
class NumpyDraws {
 public:
  explicit NumpyDraws(const Engine& engine) : engine_(engine) {}
  explicit NumpyDraws(uint32_t seed)
    requires std::same_as<Engine, std::mt19937>
      : engine_(seed) {}

  // In [0, 1), from 53 bits.
  double random() {
    const uint64_t high = bits32() >> 5, low = bits32() >> 6;
    return static_cast<double>((high << 26) + low) * 0x1p-53;
  }

  // In [low, high). REQUIRES: low < high.
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(up_to(static_cast<uint64_t>(high - low - 1)));
  }

  // Trials until the first success of probability p. REQUIRES: 0 < p < 1/3.
  int64_t geometric(double p) {
    return static_cast<int64_t>(std::ceil(std::log1p(-random()) / std::log(1 - p)));
  }

  // A permutation of the elements; works on everything with size() and [].
  template <class Elements>
  void shuffle(Elements& elements) {
    for (size_t i = elements.size(); i-- > 1;) std::swap(elements[i], elements[up_to(i)]);
  }

 private:
  // In [0, most]: as many bits as `most` has, drawn again while they are above it.
  uint64_t up_to(uint64_t most) {
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
  uint64_t bits32() { return engine_(); }

  Engine engine_;
};

using NumpyRandom = NumpyDraws<std::mt19937>;

}  // namespace bev
