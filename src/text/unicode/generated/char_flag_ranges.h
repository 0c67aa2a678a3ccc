// What the normalizers and splitters of tokenizer.json know of characters, as ranges. The lists are
// generated (tools/make_text_tables.py); unicode.h looks characters up.
#pragma once

#include <cstdint>
#include <span>

namespace bev {

// What a character is; several may hold.
enum CharFlag : uint16_t {
  kRemoved = 1 << 0,      // BERT's cleaning drops it
  kBlank = 1 << 1,        // BERT's cleaning makes it a blank
  kMark = 1 << 2,         // an accent that BERT drops
  kPunctuation = 1 << 3,  // BERT makes it a word of its own
  kWord = 1 << 4,         // \w
  kJoins = 1 << 5,        // continues a grapheme cluster: Extend, ZWJ
  kSpacing = 1 << 6,      // the same: SpacingMark
  kPrepends = 1 << 7,     // is continued by what follows: Prepend
  kControl = 1 << 8,      // a cluster by itself: Control, CR, LF
  kPictograph = 1 << 9,   // continues a cluster of pictographs
  kCombining = 1 << 10,   // a mark that StripAccents drops
  kNumeric = 1 << 11,     // a number to Digits, which knows newer ones than \p{N}
};

struct CharFlagRange {
  char32_t first, last;  // both inside
  uint16_t flags;
};

struct CombiningRange {
  char32_t first, last;
  uint8_t combining_class;  // never 0
};

// One step of a canonical decomposition, without those of Hangul.
struct Decomposition {
  char32_t code, first, second;  // second: 0 when there is none
  bool composes;                 // the pair becomes the code again in NFC
};

// Every stride-th character from first to last, and what is added to it.
struct LowerCaseRange {
  char32_t first, last;
  uint8_t stride;
  int32_t difference;
};

// All sorted by the first code, without overlaps.
std::span<const CharFlagRange> char_flag_ranges();
std::span<const CombiningRange> combining_ranges();
std::span<const Decomposition> decompositions();
std::span<const LowerCaseRange> lower_case_ranges();

}  // namespace bev
