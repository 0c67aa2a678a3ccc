#include "data/megatron/numpy_random.h"

#include <bit>

namespace bev {

double NumpyRandom::random() {
  const uint64_t high = bits32() >> 5, low = bits32() >> 6;
  return static_cast<double>((high << 26) + low) * 0x1p-53;
}

int64_t NumpyRandom::integer(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(up_to(static_cast<uint64_t>(high - low - 1)));
}

uint64_t NumpyRandom::up_to(uint64_t most) {
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
