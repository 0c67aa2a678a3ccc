#include "text/huggingface/normalizer.h"

#include <algorithm>

#include "text/unicode/ascii_letters.h"
#include "text/unicode/char_classes.h"
#include "text/unicode/char_flags.h"
#include "text/unicode/unicode_forms.h"
#include "text/utf8.h"

namespace bev {

namespace {

// The characters of the text one after another.
template <class Each>
void for_each_character(std::string_view text, Each&& each) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_character(text.data() + at);
    each(next.code, text.substr(at, next.length));
    at += next.length;
  }
}

std::string without(CharFlag flag, std::string_view text) {
  std::string kept;
  for_each_character(text, [&](char32_t c, std::string_view bytes) {
    if (c < 0x80 || !CharFlags::table().has(c, flag)) kept += bytes;
  });
  return kept;
}

// The blocks of ideographs. The library leaves out the beginning of one (U+2B820 to U+2B91F), and
// vocabularies were used with it.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(BertNormalizing what) : what_(what) {}

  void apply(std::string& text) const override {
    const bool ascii = clean_and_space(text);
    if (what_.strip_accents && !ascii) text = without(kMark, decomposed(text));
    if (!what_.lower_case) return;
    if (ascii) {
      for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    } else {
      text = lower_cased(text);
    }
  }

  bool may_drop_the_start() const override { return true; }

 private:
  // Returns whether all that is left is ASCII.
  bool clean_and_space(std::string& text) const {
    const CharFlags& flags = CharFlags::table();
    std::string result;
    result.reserve(text.size());
    bool ascii = true;
    for_each_character(text, [&](char32_t c, std::string_view bytes) {
      if (c < 0x80 && c > ' ' && c != 0x7F) {
        result += bytes;
        return;
      }
      const uint16_t is = what_.clean ? flags.of(c) : uint16_t{0};
      if ((is & kRemoved) != 0) return;
      if ((is & kBlank) != 0) {
        result += ' ';
      } else if (what_.space_chinese && is_chinese(c)) {
        result += ' ';
        result += bytes;
        result += ' ';
        ascii = false;
      } else {
        result += bytes;
        ascii = ascii && c < 0x80;
      }
    });
    text = std::move(result);
    return ascii;
  }

  BertNormalizing what_;
};

class FormNormalizer final : public Normalizer {
 public:
  explicit FormNormalizer(UnicodeForm form) : form_(form) {}

  void apply(std::string& text) const override {
    switch (form_) {
      case UnicodeForm::Composed: text = composed(text); break;
      case UnicodeForm::Decomposed: text = decomposed(text); break;
      case UnicodeForm::LowerCase: text = lower_cased(text); break;
      case UnicodeForm::WithoutMarks: text = without(kCombining, text); break;
    }
  }

  bool may_drop_the_start() const override { return form_ == UnicodeForm::WithoutMarks; }

 private:
  UnicodeForm form_;
};

class StripNormalizer final : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}

  void apply(std::string& text) const override {
    size_t first = text.size(), behind = 0;  // of what is no white space
    size_t at = 0;
    for_each_character(text, [&](char32_t c, std::string_view bytes) {
      if (UnicodeClasses::table().of(c) != CharClass::Space) {
        first = std::min(first, at);
        behind = at + bytes.size();
      }
      at += bytes.size();
    });
    if (right_) text.resize(behind);
    if (left_) text.erase(0, std::min(first, text.size()));
  }

  bool may_drop_the_start() const override { return left_; }

 private:
  bool left_, right_;
};

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}

  void apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(std::string from, std::string to)
      : from_(std::move(from)), to_(std::move(to)) {}

  void apply(std::string& text) const override {
    size_t at = text.find(from_);
    if (at == std::string::npos) return;
    std::string result;
    result.reserve(text.size() + text.size() / 2);
    size_t done = 0;
    for (; at != std::string::npos; at = text.find(from_, done)) {
      result.append(text, done, at - done);
      result += to_;
      done = at + from_.size();
    }
    text = result.append(text, done);
  }

  bool may_drop_the_start() const override { return to_.empty(); }

 private:
  std::string from_, to_;
};

class ReplaceBlanksNormalizer final : public Normalizer {
 public:
  explicit ReplaceBlanksNormalizer(std::string to) : to_(std::move(to)) {}

  void apply(std::string& text) const override {
    std::string result;
    result.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && text[end] == ' ') ++end;
      if (end - at >= 2) {
        result += to_;
        at = end;
      } else {
        result += text[at++];
      }
    }
    text = std::move(result);
  }

  bool may_drop_the_start() const override { return to_.empty(); }

 private:
  std::string to_;
};

}  // namespace

std::unique_ptr<Normalizer> bert_normalizer(BertNormalizing what) {
  return std::make_unique<BertNormalizer>(what);
}

std::unique_ptr<Normalizer> form_normalizer(UnicodeForm form) {
  return std::make_unique<FormNormalizer>(form);
}

std::unique_ptr<Normalizer> strip_normalizer(bool left, bool right) {
  return std::make_unique<StripNormalizer>(left, right);
}

std::unique_ptr<Normalizer> prepend_normalizer(std::string text) {
  return std::make_unique<PrependNormalizer>(std::move(text));
}

std::unique_ptr<Normalizer> replace_normalizer(std::string from, std::string to) {
  return std::make_unique<ReplaceNormalizer>(std::move(from), std::move(to));
}

std::unique_ptr<Normalizer> replace_blanks_normalizer(std::string to) {
  return std::make_unique<ReplaceBlanksNormalizer>(std::move(to));
}

}  // namespace bev
