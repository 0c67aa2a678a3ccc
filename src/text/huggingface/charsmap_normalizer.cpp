#include "text/huggingface/charsmap_normalizer.h"

#include <cstring>
#include <optional>
#include <vector>

#include "base/check.h"
#include "text/unicode/ascii_letters.h"
#include "text/unicode/char_flags.h"
#include "text/utf8.h"

namespace bev {

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
