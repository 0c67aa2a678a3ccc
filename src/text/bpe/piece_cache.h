// The ids of pieces seen before: a hash table of fixed size in which a new piece takes the place of
// an old one. A piece that is long or has many ids is not kept; merging it is rare.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace bev {

class PieceCache {
 public:
  static constexpr size_t kBytes = 31, kIds = 7;

  // The bytes of a piece behind which stand zeros and, last, its length.
  struct Key {
    std::array<uint64_t, 4> words;
    bool operator==(const Key& other) const {
      uint64_t different = 0;
      for (size_t i = 0; i < words.size(); ++i) different |= words[i] ^ other.words[i];
      return different == 0;
    }
  };

  struct alignas(64) Entry {
    Key key;
    std::array<int32_t, kIds> ids;  // zeros behind the last
    uint32_t count;                 // 0: empty
  };

  // REQUIRES: entries is a power of two and at least 2.
  explicit PieceCache(size_t entries) : entries_(entries), mask_(entries - 1) {}

  // REQUIRES: 1 to kBytes bytes. `readable` bytes may be read from the start of the piece on.
  static Key key_of(std::string_view piece, size_t readable);

  // Nothing when the piece is not here.
  const Entry* find(const Key& key) const {
    const size_t home = home_of(key);
    for (const size_t at : {home, home ^ 1})
      if (entries_[at].key == key) return &entries_[at];
    return nullptr;
  }

  size_t entries() const { return entries_.size(); }

  // REQUIRES: 1 to kIds ids, and that the piece is not here.
  void put(const Key& key, std::span<const int32_t> ids);

 private:
  size_t home_of(const Key& key) const {
    const auto& w = key.words;
    const uint64_t near = (w[0] ^ w[3]) * 0x9E3779B97F4A7C15;
    const uint64_t far = (w[1] ^ (w[2] << 32 | w[2] >> 32)) * 0xC2B2AE3D27D4EB4F;
    const uint64_t mixed = ((near ^ near >> 32) + (far ^ far >> 29)) * 0xD6E8FEB86659FD93;
    return static_cast<size_t>(mixed >> 32) & mask_;
  }

  std::vector<Entry> entries_;
  size_t mask_;
};

inline PieceCache::Key PieceCache::key_of(std::string_view piece, size_t readable) {
  Key key{};
  const size_t size = piece.size();
  if (readable < sizeof key.words) {
    std::memcpy(key.words.data(), piece.data(), size);
  } else if (size <= 8) {
    std::memcpy(&key.words[0], piece.data(), 8);
    key.words[0] &= UINT64_MAX >> (64 - 8 * size);
  } else {
    std::memcpy(key.words.data(), piece.data(), sizeof key.words);
    for (size_t i = 1; i < key.words.size(); ++i) {
      const size_t here = size <= 8 * i ? 0 : size - 8 * i;
      const uint64_t kept = here == 0 ? 0 : here >= 8 ? UINT64_MAX : UINT64_MAX >> (64 - 8 * here);
      key.words[i] &= kept;
    }
  }
  key.words[3] |= uint64_t{size} << 56;
  return key;
}

inline void PieceCache::put(const Key& key, std::span<const int32_t> ids) {
  Entry entry{.key = key, .ids = {}, .count = static_cast<uint32_t>(ids.size())};
  std::copy(ids.begin(), ids.end(), entry.ids.begin());
  const size_t home = home_of(key);
  // What came last is the likelier to come again: the older of the two goes.
  if (entries_[home].count > 0) entries_[home ^ 1] = entries_[home];
  entries_[home] = entry;
}

}  // namespace bev
