// The pieces of texts and how often each occurs, counted by several threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"

namespace bev {

// How often each piece of text occurs. Memory grows with the number of different pieces.

class PieceCounts {
 public:
  PieceCounts();

  // REQUIRES: 1 or more bytes, of which `readable` may be read from the start of the piece on.
  void add(std::string_view piece, size_t readable, int64_t count = 1);
  void add(const PieceCounts& other);

  // In an order that depends on what was added when.
  void for_each(FunctionRef<void(std::string_view piece, int64_t count)> body) const;
  size_t size() const { return used_ + long_.size(); }

 private:
  static constexpr size_t kShort = 15;

  // The bytes, zeros, and in the last byte how many there are: most pieces, found in one place.
  struct Slot {
    std::array<uint64_t, 2> key{};
    int64_t count = 0;  // 0: empty
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  static std::array<uint64_t, 2> key_of(std::string_view piece, size_t readable);
  static size_t hash_of(const std::array<uint64_t, 2>& key);
  Slot& slot_of(const std::array<uint64_t, 2>& key);
  void grow();

  std::vector<Slot> slots_;  // a power of two, at least a third of them empty
  size_t used_ = 0;
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> long_;
};

// Where a piece may not reach across.
enum class TextUnit : uint8_t {
  Line,  // a line with its newline, as programs see it that read files line by line
  Text,  // the whole text
};

// Cuts a unit into pieces and counts them. REQUIRES of the caller: valid UTF-8. Called by several
// threads.
using CountUnit = FunctionRef<void(std::string_view unit, PieceCounts& counts)>;

// The same for any number of threads. Bytes that are no UTF-8 are replaced first. The texts are
// read in chunks of some MiB from the front, so that mapped files need no memory of their own;
// `progress` is told, on this thread, how many bytes are done.
//
// With TextUnit::Text a chunk is what `count` gets: texts are cut only between an ASCII character
// and ASCII white space behind it, where no piece of GPT-2's division reaches across.
PieceCounts count_pieces(std::span<const std::string_view> texts, TextUnit unit, int threads,
                         CountUnit count, FunctionRef<void(int64_t bytes)> progress);

// GPT-2's pieces.
void count_gpt2_pieces(std::string_view unit, PieceCounts& counts);

}  // namespace bev
