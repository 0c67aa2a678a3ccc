// Python's random.Random: the Mersenne Twister, seeded by a list of words, and its rule for whole
// numbers, bit for bit.
#pragma once

#include <bit>
#include <cstdint>
#include <random>

namespace bev {

class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed) {
    WordsOfSeed words(seed);
    engine_ = std::mt19937(words);
  }

  // In [0, 1), from 53 bits.
  double random() {
    const uint64_t high = bits32() >> 5, low = bits32() >> 6;
    return static_cast<double>((high << 26) + low) * 0x1p-53;
  }

  // In [low, high), as randrange draws: as many bits as the number of choices has, drawn again
  // while they are too large. A single choice takes draws too. REQUIRES: low < high < low + 2^32.
  int64_t integer(int64_t low, int64_t high) {
    const auto choices = static_cast<uint64_t>(high - low);
    const int bits = static_cast<int>(std::bit_width(choices));
    uint64_t value = 0;
    do {
      value = bits32() >> (32 - bits);
    } while (value >= choices);
    return low + static_cast<int64_t>(value);
  }

 private:
  // The twister's initialisation by an array, here the 32-bit words of the seed.
  class WordsOfSeed {
   public:
    using result_type = uint32_t;
    explicit WordsOfSeed(uint64_t seed)
        : words_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
          count_(words_[1] == 0 ? 1 : 2) {}

    template <class Iterator>
    void generate(Iterator begin, Iterator end) const {
      const auto size = static_cast<size_t>(end - begin);
      const auto mixed = [&](size_t i) -> uint32_t { return begin[i] ^ (begin[i] >> 30); };
      begin[0] = 19650218;
      for (size_t i = 1; i < size; ++i)
        begin[i] = 1812433253 * mixed(i - 1) + static_cast<uint32_t>(i);
      size_t i = 1;
      const auto step = [&](uint32_t factor, uint32_t add) {
        begin[i] = (begin[i] ^ (mixed(i - 1) * factor)) + add;
        if (++i < size) return;
        begin[0] = begin[size - 1];
        i = 1;
      };
      for (size_t k = 0; k < size; ++k) {
        const size_t word = k % count_;
        step(1664525, words_[word] + static_cast<uint32_t>(word));
      }
      for (size_t k = 1; k < size; ++k) step(1566083941, 0 - static_cast<uint32_t>(i));
      begin[0] = 0x80000000;
    }

   private:
    uint32_t words_[2];
    size_t count_;
  };

  uint32_t bits32() { return static_cast<uint32_t>(engine_()); }

  std::mt19937 engine_;
};

}  // namespace bev
