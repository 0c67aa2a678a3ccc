// The steps of pre-tokenizers. Each takes the pieces of the one before apart.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

// A text on its way to the model: cut into pieces, step by step.

struct PieceList {
  struct Cut {
    size_t begin, end;  // in `text`; never equal
    bool at_start;      // the piece begins where the user's text does
  };

  std::string text;
  std::vector<Cut> cuts;  // in order; what lies between them is gone

  std::string_view piece(const Cut& cut) const {
    return std::string_view(text).substr(cut.begin, cut.end - cut.begin);
  }
};

// The pieces of a list, one after another.
class ListedPieces {
 public:
  // REQUIRES: the list outlives this.
  explicit ListedPieces(const PieceList& list) : list_(list) {}

  bool next(std::string_view& piece) {
    if (at_ == list_.cuts.size()) return false;
    piece = list_.piece(list_.cuts[at_++]);
    return true;
  }

 private:
  const PieceList& list_;
  size_t at_ = 0;
};

// One step of a pre-tokenizer. It never changes and may be shared.
class PieceStep {
 public:
  virtual ~PieceStep() = default;
  virtual void apply(PieceList& list) const = 0;
};

// Where pieces end by a regular expression that this program knows by heart (bpe_pre_tokenizer.h,
// bpe_pre_tokenizer.h).
struct PiecePattern {
  enum class Kind : uint8_t { Whole, Gpt2, Llama3 } kind = Kind::Whole;
  int numbers = 3;  // Llama3: the most in a row

  bool operator==(const PiecePattern&) const = default;
};

// What becomes of a separator: removed, a piece by itself, a part of the piece before or behind it,
// or a piece together with the separators beside it.
enum class Separator : uint8_t { Removed, Isolated, WithPrevious, WithNext, Contiguous };

// Which single characters separate.
enum class SeparatorClass : uint8_t { Number, Punctuation, WhiteSpace };

// When U+2581 or its like is put before a piece that does not begin with it.
enum class Prepend : uint8_t { Never, First, Always };

std::unique_ptr<PieceStep> split_by_pattern(PiecePattern pattern);

// REQUIRES: text is not empty.
std::unique_ptr<PieceStep> split_at_text(std::string text, Separator separator);

std::unique_ptr<PieceStep> split_at_class(SeparatorClass char_class, Separator separator);

// White space removed, punctuation isolated.
std::unique_ptr<PieceStep> split_for_bert();

// Puts a blank before each piece that does not begin with one.
std::unique_ptr<PieceStep> prefix_blank();

// Blanks become `replacement`; with `split` each begins a piece.
std::unique_ptr<PieceStep> metaspace(char32_t replacement, Prepend prepend, bool split);

// Cuts before each U+2581 that stands behind another character.
std::unique_ptr<PieceStep> split_before_words();

}  // namespace bev
