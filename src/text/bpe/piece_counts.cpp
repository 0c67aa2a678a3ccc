#include "text/bpe/piece_counts.h"

#include <bit>
#include <cstring>

namespace bev {

PieceCounts::PieceCounts() : slots_(size_t{1} << 12) {}

std::array<uint64_t, 2> PieceCounts::key_of(std::string_view piece, size_t readable) {
  static_assert(std::endian::native == std::endian::little);
  std::array<uint64_t, 2> key{};
  const size_t size = piece.size();
  if (readable < sizeof key) {
    std::memcpy(key.data(), piece.data(), size);
  } else {
    std::memcpy(key.data(), piece.data(), sizeof key);
    if (size <= 8) {
      key[0] &= UINT64_MAX >> (64 - 8 * size);
      key[1] = 0;
    } else {
      key[1] &= UINT64_MAX >> (128 - 8 * size);
    }
  }
  key[1] |= uint64_t{size} << 56;
  return key;
}

size_t PieceCounts::hash_of(const std::array<uint64_t, 2>& key) {
  const uint64_t first = key[0] * 0x9E3779B97F4A7C15, second = key[1] * 0xC2B2AE3D27D4EB4F;
  const uint64_t mixed = (first ^ first >> 32 ^ std::rotl(second, 23)) * 0xD6E8FEB86659FD93;
  return static_cast<size_t>(mixed ^ mixed >> 32);
}

PieceCounts::Slot& PieceCounts::slot_of(const std::array<uint64_t, 2>& key) {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash_of(key) & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    // Word by word: comparing arrays is a call.
    if ((slot.key[0] == key[0] && slot.key[1] == key[1]) || slot.count == 0) return slot;
  }
}

void PieceCounts::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.count != 0) slot_of(slot.key) = slot;
}

void PieceCounts::add(std::string_view piece, size_t readable, int64_t count) {
  if (piece.size() > kShort) {
    if (const auto known = long_.find(piece); known != long_.end()) {
      known->second += count;
    } else {
      long_.emplace(piece, count);
    }
    return;
  }
  const std::array<uint64_t, 2> key = key_of(piece, readable);
  Slot& slot = slot_of(key);
  const bool added = slot.count == 0;
  slot.key = key;
  slot.count += count;
  if (added && ++used_ * 3 > slots_.size() * 2) grow();
}

void PieceCounts::add(const PieceCounts& other) {
  // Room for all at once: pieces come in the order of their hashes, and a table that grew on the
  // way would be full at its front and empty behind.
  while ((used_ + other.used_) * 3 > slots_.size() * 2) grow();
  other.for_each([&](std::string_view piece, int64_t count) { add(piece, piece.size(), count); });
}

void PieceCounts::for_each(FunctionRef<void(std::string_view, int64_t)> body) const {
  for (const Slot& slot : slots_) {
    if (slot.count == 0) continue;
    const auto size = static_cast<size_t>(slot.key[1] >> 56);
    body({reinterpret_cast<const char*>(slot.key.data()), size}, slot.count);
  }
  for (const auto& [piece, count] : long_) body(piece, count);
}

}  // namespace bev
