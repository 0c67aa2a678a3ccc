// Philox4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): random numbers
// as a pure function of a key and a counter. There is no generator state anywhere in the program.
// Unless a caller says otherwise there are ten rounds, the authors' default, which has a margin:
// seven pass all of BigCrush.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace bev {

using PhiloxBlock = std::array<uint32_t, 4>;

// What the rounds mix in, for callers that draw many blocks with one key.
template <size_t kRounds = 10>
using PhiloxRounds = std::array<std::array<uint32_t, 2>, kRounds>;
template <size_t kRounds = 10>
constexpr PhiloxRounds<kRounds> philox_rounds(uint64_t key) {
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  PhiloxRounds<kRounds> rounds{};
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (std::array<uint32_t, 2>& round : rounds) {
    round = {k0, k1};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return rounds;
}

// Four random words for the 64-bit key and the 128-bit counter (high, low).
template <size_t kRounds>
constexpr PhiloxBlock philox(const PhiloxRounds<kRounds>& rounds, uint64_t high, uint64_t low) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  PhiloxBlock c{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
  // By index, which GPU compilers unroll. NOLINTNEXTLINE(modernize-loop-convert)
  for (size_t round = 0; round < kRounds; ++round) {
    const uint64_t p0 = uint64_t{kMultiplier0} * c[0];
    const uint64_t p1 = uint64_t{kMultiplier1} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ rounds[round][0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ rounds[round][1], static_cast<uint32_t>(p0)};
  }
  return c;
}
template <size_t kRounds = 10>
constexpr PhiloxBlock philox(uint64_t key, uint64_t high, uint64_t low) {
  return philox(philox_rounds<kRounds>(key), high, low);
}

// Four standard normal numbers from one block (Box and Muller 1958). Single precision is enough for
// initial weights and twice as fast; the largest magnitude is 6.7.
inline std::array<float, 4> normals_of(const PhiloxBlock& block) {
  constexpr float kTwoPi = 6.2831853f;
  std::array<float, 4> normals;
  for (size_t pair = 0; pair < 4; pair += 2) {
    // Never 0, so that the logarithm is finite.
    const float uniform = (static_cast<float>(block[pair]) + 0.5f) * 0x1p-32f;
    const float angle = kTwoPi * 0x1p-32f * static_cast<float>(block[pair + 1]);
    const float radius = std::sqrt(-2.0f * std::log(uniform));
    normals[pair] = radius * std::cos(angle);
    normals[pair + 1] = radius * std::sin(angle);
  }
  return normals;
}

// Mixes a word into a key (the finaliser of SplitMix64). Chained calls build a key from its parts.
constexpr uint64_t mix_key(uint64_t key, uint64_t word) {
  uint64_t z = key + 0x9E3779B97F4A7C15ull * (word + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// A key from a name, byte by byte.
constexpr uint64_t mix_key(uint64_t key, std::string_view name) {
  for (const char c : name) key = mix_key(key, static_cast<unsigned char>(c));
  return mix_key(key, name.size());
}

}  // namespace bev
