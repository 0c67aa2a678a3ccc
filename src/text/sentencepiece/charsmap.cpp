#include "text/sentencepiece/charsmap.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/format.h"
#include "text/utf8.h"

namespace bev {

namespace {

// The library has room for this many rules that begin one another.
constexpr int kMaxNested = 32;

static_assert(std::endian::native == std::endian::little);

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// A unit of the double array (darts-clone): a leaf holds a value; any other unit holds the byte
// that leads to it, whether a rule ends there, and where its children are.
class Unit {
 public:
  explicit Unit(uint32_t bits) : bits_(bits) {}
  uint32_t value() const { return bits_ & 0x7FFFFFFF; }
  bool reached_by(uint32_t byte) const { return (bits_ & 0x800000FF) == byte; }
  bool ends_rule() const { return (bits_ >> 8 & 1) != 0; }
  uint32_t offset() const { return (bits_ >> 10) << ((bits_ & 0x200) >> 6); }

 private:
  uint32_t bits_;
};

// Every way from the root, each node once.
class TrieWalk {
 public:
  TrieWalk(std::string_view units, std::string_view texts)
      : units_(units), texts_(texts), nested_(units.size() / 4, kUnseen) {}

  std::string fault() {
    open(0);
    while (!path_.empty() && fault_.empty()) {
      Step& step = path_.back();
      if (step.byte == 256) {
        close();
      } else {
        const uint32_t byte = step.byte++;
        descend(step.children ^ byte, byte);
      }
    }
    return fault_;
  }

 private:
  static constexpr int8_t kUnseen = -1, kOpen = -2;

  struct Step {
    uint32_t node, children;  // the unit, and where a child's place is this ^ its byte
    uint32_t byte;            // the next to look at
    int8_t rules;             // that end here
    int8_t below;             // at most, nested below
  };

  Unit unit(uint32_t at) const { return Unit(read_u32(units_, size_t{at} * 4)); }
  bool inside(uint32_t at) const { return at < units_.size() / 4; }

  void open(uint32_t node) {
    const Unit here = unit(node);
    const uint32_t children = node ^ here.offset();
    // The children's places differ in the last byte alone.
    if (!inside(children | 0xFF)) {
      fault_ = "its trie points outside itself";
      return;
    }
    if (here.ends_rule()) {
      const uint32_t text = unit(children).value();
      if (text >= texts_.size() || (static_cast<unsigned char>(texts_[text]) & 0xC0) == 0x80) {
        fault_ = "its trie points to no text";
        return;
      }
    }
    nested_[node] = kOpen;
    path_.push_back({node, children, 0, static_cast<int8_t>(here.ends_rule() ? 1 : 0), 0});
  }

  void descend(uint32_t child, uint32_t byte) {
    if (!unit(child).reached_by(byte)) return;
    const int8_t seen = nested_[child];
    if (seen == kOpen) {
      fault_ = "its trie has a loop";
    } else if (seen == kUnseen) {
      open(child);
    } else {
      path_.back().below = std::max(path_.back().below, seen);
    }
  }

  void close() {
    const Step done = path_.back();
    path_.pop_back();
    const int nested = done.rules + done.below;
    if (nested > kMaxNested) {
      fault_ = format("more than {} of its rules begin one another", kMaxNested);
      return;
    }
    nested_[done.node] = static_cast<int8_t>(nested);
    if (!path_.empty())
      path_.back().below = std::max(path_.back().below, static_cast<int8_t>(nested));
  }

  std::string_view units_, texts_;
  std::vector<int8_t> nested_;  // by unit: rules nested from there on, once known
  std::vector<Step> path_;
  std::string fault_;
};

}  // namespace

std::string charsmap_fault(std::string_view bytes) {
  if (bytes.size() < 4) return "it is shorter than the size of its trie";
  const size_t trie = read_u32(bytes, 0);
  bytes.remove_prefix(4);
  if (trie >= bytes.size() || trie % 4 != 0 || trie == 0)
    return format("its trie has {} of {} bytes", trie, bytes.size());
  const std::string_view texts = bytes.substr(trie);
  if (texts.back() != '\0') return "its last text has no end";
  if (valid_utf8_prefix(texts) != texts.size()) return "its texts are not UTF-8";
  return TrieWalk(bytes.substr(0, trie), texts).fault();
}

}  // namespace bev
