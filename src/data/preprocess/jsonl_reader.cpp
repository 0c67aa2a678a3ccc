#include "data/preprocess/jsonl_reader.h"

#include <cstring>
#include <optional>

#include "base/format.h"
#include "base/json.h"
#include "text/utf8.h"

namespace bev {

namespace {

struct Refused {
  std::string why;
};

// Whether one of the eight bytes ends a run of plain characters: a quote, a backslash or a control
// character. High bits of bytes above 127 never count, because the test borrows from below only
// where a byte below it was found already.
bool has_special(uint64_t bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  const auto zero = [](uint64_t v) { return (v - kOnes) & ~v & kHigh; };
  const uint64_t control = (bytes - kOnes * 0x20) & ~bytes & kHigh;
  return (zero(bytes ^ kOnes * '"') | zero(bytes ^ kOnes * '\\') | control) != 0;
}

const char* behind_plain(const char* at, const char* end) {
  while (end - at >= 8) {
    uint64_t bytes;
    std::memcpy(&bytes, at, 8);
    if (has_special(bytes)) break;
    at += 8;
  }
  while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20) ++at;
  return at;
}

}  // namespace

class JsonlReader::Parser {
 public:
  Parser(JsonlReader& reader, std::string_view line)
      : reader_(reader), begin_(line.data()), at_(begin_), end_(begin_ + line.size()) {}

  void object() {
    skip_blanks();
    if (peek() != '{') refuse("a JSON object, {\"key\": ...}, is wanted");
    members([&](std::string_view key) {
      for (size_t i = 0; i < reader_.keys_.size(); ++i)
        if (reader_.keys_[i] == key) return chosen(reader_.values_[i]);
      skip_value();
    });
    skip_blanks();
    if (at_ != end_) refuse("something stands behind the object");
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw Refused{format("column {}: {}", at_ - begin_ + 1, why)};
  }

  char peek() const { return at_ == end_ ? '\0' : *at_; }

  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }

  void expect(char c, std::string_view why) {
    skip_blanks();
    if (at_ == end_ || *at_ != c) refuse(why);
    ++at_;
  }

  // Calls f with each key, before its value. REQUIRES: at an opening brace.
  template <class F>
  void members(F f) {
    enter();
    skip_blanks();
    if (peek() == '}') return leave();
    for (;;) {
      skip_blanks();
      if (peek() != '"') refuse("a key in double quotes is wanted");
      const std::string_view key = text();
      expect(':', "a colon is wanted behind a key");
      skip_blanks();
      f(key);
      skip_blanks();
      if (peek() == '}') return leave();
      expect(',', "a comma or the end of the object is wanted");
    }
  }

  // Calls f before each value of the list. REQUIRES: at an opening bracket.
  template <class F>
  void elements(F f) {
    enter();
    skip_blanks();
    if (peek() == ']') return leave();
    for (;;) {
      skip_blanks();
      f();
      skip_blanks();
      if (peek() == ']') return leave();
      expect(',', "a comma or the end of the list is wanted");
    }
  }

  void enter() {
    if (++depth_ > kMaxDepth) refuse(format("more than {} levels of nesting", kMaxDepth));
    ++at_;
  }

  void leave() {
    --depth_;
    ++at_;
  }

  void chosen(Value& value) {
    value.texts.clear();
    if (peek() == '"') {
      value.kind = Kind::Text;
      value.texts.push_back(text());
    } else if (peek() == '[') {
      value.kind = Kind::List;
      elements([&] {
        if (peek() == '"') {
          value.texts.push_back(text());
        } else {
          value.kind = Kind::Other;
          value.what = "a list with something else than texts";
          skip_value();
        }
      });
    } else {
      value.kind = Kind::Other;
      value.what = skip_value();
    }
  }

  // What it was.
  std::string_view skip_value() {
    switch (peek()) {
      case '"': text(); return "a text";
      case '{': members([&](std::string_view) { skip_value(); }); return "an object";
      case '[': elements([&] { skip_value(); }); return "a list";
      case 't': word("true"); return "true";
      case 'f': word("false"); return "false";
      case 'n': word("null"); return "null";
      case 'N': word("NaN"); return "a number";
      case 'I': word("Infinity"); return "a number";
      default: number(); return "a number";
    }
  }

  void word(std::string_view wanted) {
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(wanted))
      refuse("a value is wanted");
    at_ += wanted.size();
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void digits() {
    if (!is_digit(peek())) refuse("a digit is wanted");
    while (is_digit(peek())) ++at_;
  }

  void number() {
    if (at_ == end_) refuse("the line ends in the middle");
    if (peek() == '-') {
      ++at_;
      if (peek() == 'I') return word("Infinity");
    } else if (!is_digit(peek())) {
      refuse("a value is wanted");
    }
    if (peek() == '0')
      ++at_;
    else
      digits();
    if (peek() == '.') {
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
  }

  // The text in quotes: of the line itself when it has no escapes.
  std::string_view text() {
    const char* start = ++at_;
    at_ = behind_plain(at_, end_);
    if (peek() == '"') return {start, static_cast<size_t>(at_++ - start)};
    std::string& out = reader_.unescaped_;
    const size_t first = out.size();
    for (;;) {
      out.append(start, at_);
      if (at_ == end_) refuse("the line ends within a text");
      if (*at_ == '"') break;
      if (*at_ != '\\') refuse("a control character stands in a text");
      escape(out);
      start = at_;
      at_ = behind_plain(at_, end_);
    }
    ++at_;
    return std::string_view(out).substr(first);
  }

  void escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const char c = end_ - at_ > 1 ? at_[1] : '\0';
    if (c == 'u') {
      append_utf8(escaped_character(), out);
    } else if (const size_t which = kNames.find(c); which != std::string_view::npos && c != '\0') {
      out += kMeanings[which];
      at_ += 2;
    } else {
      refuse("an escape that JSON does not have");
    }
  }

  char32_t escaped_character() {
    const char32_t first = escaped_unit();
    if (first < 0xD800 || first > 0xDFFF) return first;
    const bool pair = first < 0xDC00 && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u';
    const char32_t second = pair ? escaped_unit() : 0;
    if (second < 0xDC00 || second > 0xDFFF)
      refuse(format("\\u{:04x} is half of a surrogate pair, no character",
                    static_cast<uint32_t>(first)));
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }

  // Four hexadecimal digits behind \u.
  char32_t escaped_unit() {
    char32_t code = 0;
    for (size_t i = 2; i < 6; ++i) {
      const char c = end_ - at_ > static_cast<ptrdiff_t>(i) ? at_[i] : '\0';
      const auto digit = is_digit(c)            ? c - '0'
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                : -1;
      if (digit < 0) refuse("\\u needs four hexadecimal digits");
      code = code << 4 | static_cast<char32_t>(digit);
    }
    at_ += 6;
    return code;
  }

  JsonlReader& reader_;
  const char *begin_, *at_, *end_;
  int depth_ = 0;
};

JsonlReader::JsonlReader(std::span<const std::string> keys)
    : keys_(keys.begin(), keys.end()), values_(keys.size()) {}

std::string JsonlReader::read(std::string_view line) {
  for (Value& value : values_) {
    value.kind = Kind::Missing;
    value.texts.clear();
  }
  unescaped_.clear();
  // Views into it must stay where they are.
  unescaped_.reserve(line.size());
  if (const size_t good = valid_utf8_prefix(line); good != line.size())
    return format("column {}: byte 0x{:02x} is no UTF-8", good + 1,
                  static_cast<unsigned>(static_cast<unsigned char>(line[good])));
  try {
    Parser(*this, line).object();
  } catch (Refused& refused) {
    return std::move(refused.why);
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (values_[i].kind == Kind::Missing) return format("there is no key {}", in_quotes(keys_[i]));
    if (values_[i].kind == Kind::Other)
      return format("{} is {}; a text or a list of texts is wanted", in_quotes(keys_[i]),
                    values_[i].what);
  }
  return {};
}

}  // namespace bev
