// Pieces to ids with a memory of pieces seen before: the loop in which byte-level tokenizers spend
// their time.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "text/bpe/piece_cache.h"

namespace bev {

// Ids on their way into the vector, some thousand at a time: most pieces have one or two, and a
// fixed number is copied faster than the right one.
class IdBuffer {
 public:
  explicit IdBuffer(std::vector<int32_t>& ids) : ids_(ids) {}

  void add(const PieceCache::Entry& entry) {
    if (used_ + PieceCache::kIds > buffer_.size()) flush();
    for (size_t i = 0; i < PieceCache::kIds; ++i) buffer_[used_ + i] = entry.ids[i];
    used_ += entry.count;
  }

  void add(std::span<const int32_t> ids) {
    if (used_ + ids.size() > buffer_.size()) flush();
    if (ids.size() > buffer_.size()) {
      ids_.insert(ids_.end(), ids.begin(), ids.end());
    } else {
      std::copy(ids.begin(), ids.end(), buffer_.data() + used_);
      used_ += ids.size();
    }
  }

  void flush() {
    ids_.insert(ids_.end(), buffer_.data(), buffer_.data() + used_);
    used_ = 0;
  }

 private:
  std::vector<int32_t>& ids_;
  std::array<int32_t, 4096> buffer_;
  size_t used_ = 0;
};

class PieceEncoder {
 public:
  static constexpr size_t kCachedPieces = size_t{1} << 16;  // 4 MiB

  // REQUIRES: cached_pieces is a power of two and at least 2.
  explicit PieceEncoder(size_t cached_pieces = kCachedPieces) : cache_(cached_pieces) {}

  size_t cached_pieces() const { return cache_.entries(); }

  // Appends the ids of all pieces. `pieces.next(piece)` gives them, parts of a text that ends at
  // `end`; `encode(piece)` the ids of one, a span that is good until the next call. A piece always
  // has the same ids.
  template <class Pieces, class Encode>
  void encode(Pieces pieces, const char* end, Encode&& encode, std::vector<int32_t>& ids) {
    IdBuffer buffer(ids);
    std::string_view piece;
    while (pieces.next(piece)) {
      if (piece.size() > PieceCache::kBytes) {
        buffer.add(encode(piece));
        continue;
      }
      const PieceCache::Key key =
          PieceCache::key_of(piece, static_cast<size_t>(end - piece.data()));
      if (const PieceCache::Entry* known = cache_.find(key)) {
        buffer.add(*known);
        continue;
      }
      const std::span<const int32_t> merged = encode(piece);
      if (!merged.empty() && merged.size() <= PieceCache::kIds) cache_.put(key, merged);
      buffer.add(merged);
    }
    buffer.flush();
  }

 private:
  PieceCache cache_;
};

}  // namespace bev
