// One line of a jsonl file: the texts under chosen keys of a JSON object. What Python's json.loads
// accepts is accepted, NaN, Infinity and numbers of any length too, since such lines come from
// there; the rest of the object is checked and skipped, not stored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

class JsonlReader {
 public:
  // Deeper lists and objects are refused.
  static constexpr int kMaxDepth = 512;

  explicit JsonlReader(std::span<const std::string> keys);

  // Why the line is refused: no JSON object, no UTF-8, half of a surrogate pair, a key that is
  // missing, a value that is neither a text nor a list of texts. Empty when it is good. Of a key
  // that stands there twice the last value counts.
  std::string read(std::string_view line);

  // The texts under a key of the last line that was good: one, or those of the list. They live
  // until the next read or as long as the line. REQUIRES: key < the number of keys.
  std::span<const std::string_view> texts(size_t key) const { return values_[key].texts; }
  // Whether they were a list.
  bool is_list(size_t key) const { return values_[key].kind == Kind::List; }

 private:
  enum class Kind : uint8_t { Missing, Text, List, Other };
  struct Value {
    Kind kind = Kind::Missing;
    std::string_view what{};  // Other: what stands there
    std::vector<std::string_view> texts{};
  };

  class Parser;

  std::vector<std::string> keys_;
  std::vector<Value> values_;
  std::string unescaped_;  // texts with escapes; never longer than the line
};

}  // namespace bev
