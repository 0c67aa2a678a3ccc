#include "text/huggingface/normalizer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/check.h"
#include "text/unicode/unicode.h"
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

namespace {

// A unit of the double array: its label (with the highest bit set in one that holds a value), where
// its children are, and whether one of them holds a value.
struct Unit {
  uint32_t bits;

  uint32_t label() const { return bits & (uint32_t{1} << 31 | 0xFF); }
  uint32_t offset() const { return (bits >> 10) << ((bits & 1 << 9) >> 6); }
  bool has_value() const { return (bits >> 8 & 1) != 0; }
  uint32_t value() const { return bits & ~(uint32_t{1} << 31); }
};

class Charsmap {
 public:
  Charsmap(std::string_view bytes, std::string_view where) {
    uint32_t size = 0;
    BEV_CHECK(bytes.size() >= sizeof size, Data, "{}: {} bytes are no table of replacements", where,
              bytes.size());
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    BEV_CHECK(size % sizeof(Unit) == 0 && size > 0 && size <= bytes.size(), Data,
              "{}: the trie of {} bytes does not fit the {} bytes behind its size", where, size,
              bytes.size());
    units_.resize(size / sizeof(Unit));
    std::memcpy(units_.data(), bytes.data(), size);
    texts_ = bytes.substr(size);
    BEV_CHECK(valid_utf8_prefix(texts_) == texts_.size(), Data,
              "{}: the replacements are not valid UTF-8", where);
  }

  // What replaces the shortest string of the table that the text begins with; nothing when there is
  // none. A table that leads outside itself has none there.
  std::optional<std::string_view> find(std::string_view text) const {
    size_t node = units_[0].offset();
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= units_.size() || units_[node].label() != byte) return std::nullopt;
      const Unit unit = units_[node];
      node ^= unit.offset();
      if (!unit.has_value()) continue;
      if (node >= units_.size() || units_[node].value() >= texts_.size()) return std::nullopt;
      const size_t begin = units_[node].value();
      const std::string_view found = std::string_view(texts_).substr(begin);
      if ((static_cast<unsigned char>(found[0]) & 0xC0) == 0x80) return std::nullopt;
      return found.substr(0, found.find('\0'));
    }
    return std::nullopt;
  }

 private:
  std::vector<Unit> units_;  // never empty
  std::string texts_;        // each ends with a zero
};

// How many bytes at the start of the text are one character to its reader, where that is fewer than
// the limit. Rules that only join to longer ones (Hangul, flags) are left out.
class Clusters {
 public:
  static constexpr size_t kLimit = 6;  // bytes

  explicit Clusters(std::string_view text) : text_(text) {}

  size_t length() const {
    const bool plain = is_ascii(text_[0]) && (text_.size() == 1 || is_ascii(text_[1]));
    if (plain && text_[0] != '\r') return 1;
    Utf8Character last = utf8_character(text_.data());
    size_t at = last.length;
    if (last.code == '\r') return text_.substr(at).starts_with('\n') ? 2 : 1;
    uint16_t before = flags_.of(last.code);
    bool pictographs = (before & kPictograph) != 0;  // one and what extends it
    while (at < text_.size()) {
      const Utf8Character next = utf8_character(text_.data() + at);
      const uint16_t is = flags_.of(next.code);
      if (((before | is) & kControl) != 0) break;
      const bool joins = (is & kJoins) != 0;
      const bool another = pictographs && last.code == kJoiner && (is & kPictograph) != 0;
      if (!joins && (is & kSpacing) == 0 && (before & kPrepends) == 0 && !another) break;
      pictographs = (is & kPictograph) != 0 || (pictographs && joins);
      before = is;
      last = next;
      at += next.length;
    }
    return at;
  }

 private:
  static constexpr char32_t kJoiner = 0x200D;

  std::string_view text_;
  const CharFlags& flags_ = CharFlags::table();
};

class CharsmapNormalizer final : public Normalizer {
 public:
  CharsmapNormalizer(std::string_view bytes, std::string_view where) : map_(bytes, where) {}

  // A cluster of few bytes is looked up as a whole: what its beginning is replaced by stands for
  // all of it. Characters of others are looked up by themselves.
  void apply(std::string& text) const override {
    std::string result;
    result.reserve(text.size());
    const std::string_view all = text;
    for (size_t at = 0; at < all.size();) {
      const size_t length = Clusters(all.substr(at)).length();
      const std::string_view cluster = all.substr(at, length);
      at += length;
      if (length < Clusters::kLimit) {
        if (const auto found = map_.find(cluster)) {
          result += *found;
          continue;
        }
      }
      for (size_t i = 0; i < length;) {
        const std::string_view character =
            cluster.substr(i, utf8_character(cluster.data() + i).length);
        result += map_.find(character).value_or(character);
        i += character.size();
      }
    }
    text = std::move(result);
  }

  bool may_drop_the_start() const override { return true; }

 private:
  Charsmap map_;
};

}  // namespace

std::unique_ptr<Normalizer> charsmap_normalizer(std::string_view bytes, std::string_view where) {
  return std::make_unique<CharsmapNormalizer>(bytes, where);
}

std::string bytes_of_base64(std::string_view text, std::string_view where) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  BEV_CHECK(text.size() % 4 == 0, Data, "{}: {} characters are no base64", where, text.size());
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size() - padding; ++i) {
    const size_t digit = kDigits.find(text[i]);
    BEV_CHECK(digit != std::string_view::npos, Data, "{}: character {} is no digit of base64",
              where, i);
    bits = bits << 6 | static_cast<uint32_t>(digit);
    // A byte is whole behind the second, third and fourth of four digits.
    if (i % 4 > 0) bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)) & 0xFF);
  }
  return bytes;
}

}  // namespace bev
