#include "text/huggingface/pre_tokenizer.h"

#include "text/bpe/bpe_pre_tokenizer.h"
#include "text/unicode/unicode.h"
#include "text/utf8.h"

namespace bev {

namespace {

using Cut = PieceList::Cut;

// A step that leaves the text as it is. `split` is called with each piece and an `add(begin, end)`
// for parts of it, in bytes from its begin; empty parts are left out.
template <class Split>
void split_each(PieceList& list, Split&& split) {
  std::vector<Cut> cuts;
  cuts.reserve(list.cuts.size());
  for (const Cut& cut : list.cuts) {
    split(list.piece(cut), [&](size_t begin, size_t end) {
      if (begin < end)
        cuts.push_back({cut.begin + begin, cut.begin + end, cut.at_start && begin == 0});
    });
  }
  list.cuts = std::move(cuts);
}

class PatternStep final : public PieceStep {
 public:
  explicit PatternStep(PiecePattern pattern) : pattern_(pattern) {}

  void apply(PieceList& list) const override {
    split_each(list, [&](std::string_view piece, auto&& add) {
      switch (pattern_.kind) {
        case PiecePattern::Kind::Whole: return add(0, piece.size());
        case PiecePattern::Kind::Gpt2: return add_all(Gpt2PreTokenizer(piece), piece, add);
        case PiecePattern::Kind::Llama3:
          return add_all(Llama3PreTokenizer(piece, pattern_.numbers), piece, add);
      }
    });
  }

 private:
  template <class Pieces, class Add>
  static void add_all(Pieces pieces, std::string_view whole, Add&& add) {
    std::string_view part;
    while (pieces.next(part)) {
      const auto begin = static_cast<size_t>(part.data() - whole.data());
      add(begin, begin + part.size());
    }
  }

  PiecePattern pattern_;
};

// Puts the parts of one piece together as `separator` says. The separators are reported from the
// left; what lies between them is the rest.
template <class Add>
class Parts {
 public:
  Parts(Separator separator, Add& add) : separator_(separator), add_(add) {}

  void separate(size_t begin, size_t end) {
    switch (separator_) {
      case Separator::Removed: add_(open_, begin); break;
      case Separator::Isolated:
        add_(open_, begin);
        add_(begin, end);
        break;
      case Separator::WithPrevious: add_(open_, end); break;
      case Separator::WithNext:
        add_(open_, begin);
        open_ = begin;
        return;
      case Separator::Contiguous:
        if (begin > behind_) {
          // Not beside the last one: that one ends, then what lies between.
          add_(open_, behind_);
          add_(behind_, begin);
          open_ = begin;
        }
        behind_ = end;
        return;
    }
    open_ = end;
  }

  void finish(size_t size) {
    if (separator_ != Separator::Contiguous) return add_(open_, size);
    add_(open_, behind_);
    add_(behind_, size);
  }

 private:
  Separator separator_;
  Add& add_;
  size_t open_ = 0;    // where the part begins that is not reported yet
  size_t behind_ = 0;  // Contiguous: behind the last separator
};

class TextStep final : public PieceStep {
 public:
  TextStep(std::string text, Separator separator) : text_(std::move(text)), separator_(separator) {}

  void apply(PieceList& list) const override {
    split_each(list, [&](std::string_view piece, auto&& add) {
      Parts parts(separator_, add);
      for (size_t at = piece.find(text_); at != std::string_view::npos;
           at = piece.find(text_, at + text_.size()))
        parts.separate(at, at + text_.size());
      parts.finish(piece.size());
    });
  }

 private:
  std::string text_;
  Separator separator_;
};

class ClassStep final : public PieceStep {
 public:
  ClassStep(SeparatorClass char_class, Separator separator)
      : class_(char_class), separator_(separator) {}

  void apply(PieceList& list) const override {
    split_each(list, [&](std::string_view piece, auto&& add) {
      Parts parts(separator_, add);
      for (size_t at = 0; at < piece.size();) {
        const Utf8Character next = utf8_character(piece.data() + at);
        if (separates(next.code)) parts.separate(at, at + next.length);
        at += next.length;
      }
      parts.finish(piece.size());
    });
  }

 private:
  bool separates(char32_t c) const {
    switch (class_) {
      case SeparatorClass::Number: return CharFlags::table().has(c, kNumeric);
      case SeparatorClass::Punctuation: return CharFlags::table().has(c, kPunctuation);
      case SeparatorClass::WhiteSpace: return UnicodeClasses::table().of(c) == CharClass::Space;
    }
    return false;
  }

  SeparatorClass class_;
  Separator separator_;
};

class BertStep final : public PieceStep {
 public:
  void apply(PieceList& list) const override {
    const CharFlags& flags = CharFlags::table();
    const UnicodeClasses& classes = UnicodeClasses::table();
    split_each(list, [&](std::string_view piece, auto&& add) {
      size_t open = 0;
      for (size_t at = 0; at < piece.size();) {
        if (const char c = piece[at]; is_ascii(c)) {
          // Neither is a letter or a number, the most frequent of all.
          const CharClass char_class = kAsciiClass[static_cast<unsigned char>(c)];
          if (char_class == CharClass::Letter || char_class == CharClass::Number) {
            ++at;
            continue;
          }
        }
        const Utf8Character next = utf8_character(piece.data() + at);
        const bool punctuation = flags.has(next.code, kPunctuation);
        if (punctuation || classes.of(next.code) == CharClass::Space) {
          add(open, at);
          if (punctuation) add(at, at + next.length);
          open = at + next.length;
        }
        at += next.length;
      }
      add(open, piece.size());
    });
  }
};

class PrefixBlankStep final : public PieceStep {
 public:
  void apply(PieceList& list) const override {
    PieceList result;
    for (const Cut& cut : list.cuts) {
      const std::string_view piece = list.piece(cut);
      const size_t begin = result.text.size();
      if (!piece.starts_with(' ')) result.text += ' ';
      result.text += piece;
      result.cuts.push_back({begin, result.text.size(), cut.at_start});
    }
    list = std::move(result);
  }
};

class MetaspaceStep final : public PieceStep {
 public:
  MetaspaceStep(char32_t replacement, Prepend prepend, bool split)
      : prepend_(prepend), split_(split) {
    append_utf8(replacement, replacement_);
  }

  void apply(PieceList& list) const override {
    PieceList result;
    result.text.reserve(list.text.size() + list.text.size() / 2);
    for (const Cut& cut : list.cuts) {
      const std::string_view piece = list.piece(cut);
      size_t begin = result.text.size();
      const bool has_one = piece.starts_with(' ') || piece.starts_with(replacement_);
      const bool wanted =
          prepend_ == Prepend::Always || (prepend_ == Prepend::First && cut.at_start);
      if (wanted && !has_one) result.text += replacement_;
      for (const char c : piece) {
        if (c == ' ') {
          result.text += replacement_;
        } else {
          result.text += c;
        }
      }
      if (split_) {
        bool at_start = cut.at_start;
        for (size_t at = result.text.find(replacement_, begin + 1); at != std::string::npos;
             at = result.text.find(replacement_, begin + 1)) {
          result.cuts.push_back({begin, at, at_start});
          at_start = false;
          begin = at;
        }
        result.cuts.push_back({begin, result.text.size(), at_start});
      } else {
        result.cuts.push_back({begin, result.text.size(), cut.at_start});
      }
    }
    list = std::move(result);
  }

 private:
  std::string replacement_;
  Prepend prepend_;
  bool split_;
};

class WordStep final : public PieceStep {
 public:
  void apply(PieceList& list) const override {
    static constexpr std::string_view kWordMark = "\u2581";
    split_each(list, [&](std::string_view piece, auto&& add) {
      size_t open = 0;
      for (size_t at = piece.find(kWordMark, 0); at != std::string_view::npos;
           at = piece.find(kWordMark, at + kWordMark.size())) {
        const bool behind_another =
            at >= kWordMark.size() && piece.substr(at - kWordMark.size()).starts_with(kWordMark);
        if (at == 0 || behind_another) continue;
        add(open, at);
        open = at;
      }
      add(open, piece.size());
    });
  }
};

}  // namespace

std::unique_ptr<PieceStep> split_by_pattern(PiecePattern pattern) {
  return std::make_unique<PatternStep>(pattern);
}

std::unique_ptr<PieceStep> split_at_text(std::string text, Separator separator) {
  return std::make_unique<TextStep>(std::move(text), separator);
}

std::unique_ptr<PieceStep> split_at_class(SeparatorClass char_class, Separator separator) {
  return std::make_unique<ClassStep>(char_class, separator);
}

std::unique_ptr<PieceStep> split_for_bert() { return std::make_unique<BertStep>(); }

std::unique_ptr<PieceStep> prefix_blank() { return std::make_unique<PrefixBlankStep>(); }

std::unique_ptr<PieceStep> metaspace(char32_t replacement, Prepend prepend, bool split) {
  return std::make_unique<MetaspaceStep>(replacement, prepend, split);
}

std::unique_ptr<PieceStep> split_before_words() { return std::make_unique<WordStep>(); }

}  // namespace bev
