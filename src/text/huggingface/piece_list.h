// A text on its way to the model: cut into pieces, step by step.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bev {

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

}  // namespace bev
