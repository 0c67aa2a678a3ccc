// The pieces of texts and how often each occurs, counted by several threads.
#pragma once

#include <span>
#include <string_view>

#include "base/function_ref.h"
#include "text/bpe/piece_counts.h"

namespace bev {

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
