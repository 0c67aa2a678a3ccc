// The section "pre_tokenizer".
#include <array>
#include <string_view>

#include "text/huggingface/tokenizer_json.h"

namespace bev {

namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// The one pattern as several programs write it, around how many numbers stay together.
struct Spelling {
  std::string_view begin, end;
};
constexpr std::array<Spelling, 2> kLlama3 = {
    {{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)",
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
     {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|)",
      R"(| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}}};

struct Numbers {
  std::string_view text;
  int most;
};
constexpr std::array<Numbers, 3> kNumbers = {
    {{R"(\p{N}{1,3})", 3}, {R"(\p{N})", 1}, {R"(\p{N}{1,2})", 2}}};

PiecePattern known_pattern(const JsonCursor& cursor, std::string_view text) {
  if (text == kGpt2) return {.kind = PiecePattern::Kind::Gpt2};
  for (const Spelling& spelling : kLlama3)
    for (const Numbers& numbers : kNumbers)
      if (text == std::string(spelling.begin).append(numbers.text).append(spelling.end))
        return {.kind = PiecePattern::Kind::Llama3, .numbers = numbers.most};
  cursor.refuse("a String, or the regular expressions of GPT-2, GPT-4, Llama 3 and Qwen 2");
}

Separator separator_of(const JsonCursor& cursor) {
  const std::string name = cursor.string();
  if (name == "Removed") return Separator::Removed;
  if (name == "Isolated") return Separator::Isolated;
  if (name == "MergedWithPrevious") return Separator::WithPrevious;
  if (name == "MergedWithNext") return Separator::WithNext;
  if (name == "Contiguous") return Separator::Contiguous;
  cursor.refuse("Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

class StepReader {
 public:
  explicit StepReader(TokenizerParts& parts) : parts_(parts) {}

  void read(const JsonCursor& cursor) {
    const std::string type = type_of(cursor);
    // ByteLevel writes bytes as characters; a step behind it would see those.
    if (bytes_) cursor.get("type").refuse("nothing after ByteLevel");
    if (type == "ByteLevel") return byte_level(cursor);
    if (type == "Split") return split(cursor);
    if (type == "Metaspace") return add(read_metaspace(cursor));
    if (type == "WhitespaceSplit")
      return add(split_at_class(SeparatorClass::WhiteSpace, Separator::Removed));
    if (type == "BertPreTokenizer") return add(split_for_bert());
    if (type == "Digits") {
      const bool each = cursor.boolean_or("individual_digits", false);
      return add(split_at_class(SeparatorClass::Number,
                                each ? Separator::Isolated : Separator::Contiguous));
    }
    if (type == "Punctuation")
      return add(split_at_class(
          SeparatorClass::Punctuation,
          cursor.has("behavior") ? separator_of(cursor.get("behavior")) : Separator::Isolated));
    cursor.get("type").refuse(
        "ByteLevel, Split, Metaspace, WhitespaceSplit, BertPreTokenizer, Digits, Punctuation, "
        "Sequence");
  }

  // The steps are one pattern, and a blank in front of it at most.
  void finish() {
    if (!other_) {
      parts_.pattern = pattern_.value_or(PiecePattern{});
      parts_.prefix_blank = blank_;
    }
  }

  bool bytes() const { return bytes_; }

 private:
  void add(std::unique_ptr<PieceStep> step) {
    other_ = true;
    parts_.steps.push_back(std::move(step));
  }

  void add_pattern(PiecePattern pattern) {
    parts_.steps.push_back(split_by_pattern(pattern));
    other_ = other_ || pattern_.has_value();
    pattern_ = pattern;
  }

  void byte_level(const JsonCursor& cursor) {
    bytes_ = true;
    if (cursor.boolean_or("add_prefix_space", true)) {
      parts_.steps.push_back(prefix_blank());
      other_ = other_ || pattern_.has_value();  // a blank before each of several pieces
      blank_ = true;
    }
    if (cursor.boolean_or("use_regex", true)) add_pattern({.kind = PiecePattern::Kind::Gpt2});
  }

  void split(const JsonCursor& cursor) {
    const JsonPattern pattern = pattern_of(cursor.at("pattern"));
    const JsonCursor behavior = cursor.at("behavior");
    const Separator separator = separator_of(behavior);
    const bool invert = cursor.boolean_or("invert", false);
    if (!pattern.is_regex) {
      if (invert) cursor.get("invert").refuse("false, with a String");
      if (pattern.text.empty()) cursor.at("pattern").refuse("a String that is not empty");
      return add(split_at_text(pattern.text, separator));
    }
    const PiecePattern known = known_pattern(cursor.at("pattern"), pattern.text);
    // Every character is in a match, so these two are the same.
    const bool pieces = (separator == Separator::Isolated && !invert) ||
                        (separator == Separator::Removed && invert);
    if (!pieces) behavior.refuse("Isolated, or Removed with invert, with a Regex");
    add_pattern(known);
  }

  std::unique_ptr<PieceStep> read_metaspace(const JsonCursor& cursor) const {
    return metaspace(cursor.at("replacement").character(), read_prepend(cursor),
                     cursor.boolean_or("split", true));
  }

  TokenizerParts& parts_;
  std::optional<PiecePattern> pattern_;
  bool bytes_ = false, blank_ = false, other_ = false;
};

}  // namespace

bool read_piece_steps(const JsonCursor& section, TokenizerParts& parts) {
  StepReader reader(parts);
  if (!section.is_null())
    for (const JsonCursor& cursor : flattened(section, "pretokenizers")) reader.read(cursor);
  reader.finish();
  return reader.bytes();
}

}  // namespace bev
