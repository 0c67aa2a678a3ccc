#include "text/bpe/piece_counter.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "text/bpe/bpe_pre_tokenizer.h"
#include "text/utf8.h"

namespace bev {

namespace {

constexpr size_t kChunk = size_t{2} << 20;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The first place at or behind `at` where the text may be cut. A function of the place alone, so
// that the end of a chunk is the beginning of the next.
size_t border(std::string_view text, size_t at, TextUnit unit) {
  if (at == 0 || at >= text.size()) return std::min(at, text.size());
  if (unit == TextUnit::Line) {
    const size_t newline = text.find('\n', at - 1);
    return newline == std::string_view::npos ? text.size() : newline + 1;
  }
  for (; at < text.size(); ++at) {
    const char before = text[at - 1];
    if (is_blank(text[at]) && !is_blank(before) && static_cast<unsigned char>(before) < 0x80)
      return at;
  }
  return at;
}

void count_chunk(std::string_view chunk, TextUnit unit, CountUnit count, PieceCounts& counts) {
  std::string replaced;
  if (valid_utf8_prefix(chunk) != chunk.size()) {
    replaced = replace_invalid_utf8(chunk);
    chunk = replaced;
  }
  if (unit == TextUnit::Text) {
    count(chunk, counts);
    return;
  }
  while (!chunk.empty()) {
    const size_t newline = chunk.find('\n');
    const size_t size = newline == std::string_view::npos ? chunk.size() : newline + 1;
    count(chunk.substr(0, size), counts);
    chunk.remove_prefix(size);
  }
}

struct Chunk {
  std::string_view text;  // all of it
  size_t begin;           // the chunk is from the border behind this to the next one
};

// What the threads share.
class Work {
 public:
  Work(std::span<const std::string_view> texts, TextUnit unit, CountUnit count)
      : unit_(unit), count_(count) {
    for (const std::string_view text : texts)
      for (size_t begin = 0; begin < text.size(); begin += kChunk) chunks_.push_back({text, begin});
  }

  // Takes chunks until none is left or a thread has failed.
  void take_part(PieceCounts& counts, FunctionRef<void(int64_t)> progress) noexcept {
    try {
      for (size_t i = next_++; i < chunks_.size() && !stop_; i = next_++) {
        const auto& [text, place] = chunks_[i];
        const size_t begin = border(text, place, unit_);
        const size_t end = border(text, place + kChunk, unit_);
        if (begin < end) count_chunk(text.substr(begin, end - begin), unit_, count_, counts);
        progress(done_ += static_cast<int64_t>(std::min(kChunk, text.size() - place)));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
    }
  }

  void rethrow() {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  TextUnit unit_;
  CountUnit count_;
  std::vector<Chunk> chunks_;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> done_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

PieceCounts count_pieces(std::span<const std::string_view> texts, TextUnit unit, int threads,
                         CountUnit count, FunctionRef<void(int64_t)> progress) {
  Work work(texts, unit, count);
  std::vector<PieceCounts> counts(static_cast<size_t>(std::max(threads, 1)));
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < counts.size(); ++i)
      others.emplace_back([&, i] { work.take_part(counts[i], [](int64_t) {}); });
    work.take_part(counts[0], progress);
  }
  work.rethrow();
  for (size_t i = 1; i < counts.size(); ++i) counts[0].add(counts[i]);
  return std::move(counts[0]);
}

void count_gpt2_pieces(std::string_view unit, PieceCounts& counts) {
  const char* end = unit.data() + unit.size();
  Gpt2PreTokenizer pieces(unit);
  std::string_view piece;
  while (pieces.next(piece)) counts.add(piece, static_cast<size_t>(end - piece.data()));
}

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
