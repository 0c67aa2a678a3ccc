#include "text/sentencepiece/sentencepiece_file.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/format.h"
#include "base/json.h"
#include "text/utf8.h"

namespace bev {

namespace {

enum class Wire : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct Field {
  uint32_t number = 0;
  Wire wire = Wire::Varint;
  uint64_t value = 0;      // of the numbers
  std::string_view bytes;  // of the rest
};

// The fields of one protobuf message.
class Message {
 public:
  Message(std::string_view bytes, std::string_view file, std::string_view what)
      : rest_(bytes), file_(file), what_(what) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field.number = static_cast<uint32_t>(tag >> 3);
    BEV_CHECK(tag <= UINT32_MAX && field.number > 0, Data, "{}: {} is damaged: no field has tag {}",
              file_, what_, tag);
    field.wire = static_cast<Wire>(tag & 7);
    field.bytes = {};
    field.value = 0;
    switch (field.wire) {
      case Wire::Varint: field.value = varint(); break;
      case Wire::Fixed64: field.value = fixed(8); break;
      case Wire::Fixed32: field.value = fixed(4); break;
      case Wire::Bytes: field.bytes = take(varint()); break;
      default:
        throw Error(ErrorKind::Data, format("{}: {} is damaged: field {} has wire type {}", file_,
                                            what_, field.number, tag & 7));
    }
    return true;
  }

  // The field's type must be the one that programs expect of its number.
  void require(const Field& field, Wire wire) const {
    BEV_CHECK(field.wire == wire, Data, "{}: {} is damaged: field {} has wire type {}, not {}",
              file_, what_, field.number, static_cast<int>(field.wire), static_cast<int>(wire));
  }

 private:
  std::string_view take(uint64_t size) {
    BEV_CHECK(size <= rest_.size(), Data, "{}: {} ends within a field: {} bytes of {} are there",
              file_, what_, rest_.size(), size);
    const std::string_view taken = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  uint64_t fixed(size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, take(size).data(), size);
    return value;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    throw Error(ErrorKind::Data, format("{}: {} is damaged: a number without end", file_, what_));
  }

  std::string_view rest_, file_, what_;
};

// The byte of "<0x41>".
std::optional<size_t> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return {};
  size_t byte = 0;
  for (const char c : piece.substr(3, 2)) {
    const size_t digit = std::string_view("0123456789ABCDEF").find(c);
    if (digit == std::string_view::npos) return {};
    byte = byte * 16 + digit;
  }
  return byte;
}

class ModelReader {
 public:
  explicit ModelReader(std::string_view file) : file_(file) {}

  SentencePieceFacts read(std::string_view bytes) {
    Message message(bytes, file_, "the model");
    Field field;
    while (message.next(field)) {
      if (field.number > 5) continue;
      message.require(field, Wire::Bytes);
      switch (field.number) {
        case 1: piece(field.bytes); break;
        case 2: trainer(field.bytes); break;
        case 3: normalizer(field.bytes, "the normalizer"); break;
        case 5: normalizer(field.bytes, "the denormalizer"); break;
        default: break;
      }
    }
    BEV_CHECK(!facts_.pieces.empty(), Data,
              "{}: there are no pieces; this is no SentencePiece model", file_);
    BEV_CHECK(unknown_ == 1, Data, "{}: {} pieces stand for what is unknown; one does", file_,
              unknown_);
    BEV_CHECK(!facts_.byte_fallback || bytes_.all(), Data,
              "{}: characters fall back to bytes, but only {} of 256 bytes are pieces", file_,
              bytes_.count());
    return std::move(facts_);
  }

 private:
  void piece(std::string_view bytes) {
    const size_t id = facts_.pieces.size();
    Message message(bytes, file_, "a piece");
    SentencePieceFacts::Piece piece;
    Field field;
    while (message.next(field)) {
      if (field.number == 1) {
        message.require(field, Wire::Bytes);
        BEV_CHECK(piece.text.empty(), Data, "{}: piece {} has two texts", file_, id);
        piece.text = field.bytes;
      } else if (field.number == 2) {
        message.require(field, Wire::Fixed32);
        piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
        BEV_CHECK(std::isfinite(piece.score), Data, "{}: the score of piece {} is not finite",
                  file_, id);
      } else if (field.number == 3) {
        message.require(field, Wire::Varint);
        BEV_CHECK(field.value >= 1 && field.value <= static_cast<uint64_t>(PieceType::Byte), Data,
                  "{}: piece {} has type {}; there are 1 to 6", file_, id, field.value);
        piece.type = static_cast<PieceType>(field.value);
      }
    }
    check(piece, id);
    facts_.pieces.push_back(piece);
  }

  void check(const SentencePieceFacts::Piece& piece, size_t id) {
    const std::string_view text = piece.text;
    BEV_CHECK(!text.empty(), Data, "{}: piece {} is empty", file_, id);
    BEV_CHECK(text.find('\0') == std::string_view::npos && valid_utf8_prefix(text) == text.size(),
              Data, "{}: piece {}, {}, is not UTF-8 or has a zero byte", file_, id,
              in_quotes(text));
    if (piece.type == PieceType::Byte) {
      const std::optional<size_t> byte = byte_of_piece(text);
      BEV_CHECK(byte, Data, "{}: piece {}, {}, is to be a byte; they are written <0x00> to <0xFF>",
                file_, id, in_quotes(text));
      bytes_.set(*byte);
    }
    if (piece.type == PieceType::Unknown) ++unknown_;
    BEV_CHECK(texts_.insert(text).second, Data, "{}: the piece {} is there twice", file_,
              in_quotes(text));
  }

  void trainer(std::string_view bytes) {
    BEV_CHECK(!std::exchange(has_trainer_, true), Data, "{}: two settings of a training", file_);
    Message message(bytes, file_, "the settings of the training");
    Field field;
    while (message.next(field)) {
      if (field.number == 3) {
        message.require(field, Wire::Varint);
        BEV_CHECK(
            field.value >= 1 && field.value <= static_cast<uint64_t>(SentencePieceModel::Char),
            Data, "{}: models of type {} are not known; there are 1 to 4", file_, field.value);
        facts_.model = static_cast<SentencePieceModel>(field.value);
      } else if (field.number == 35) {
        message.require(field, Wire::Varint);
        facts_.byte_fallback = field.value != 0;
      } else if (field.number >= 44 && field.number <= 48) {  // the names of special pieces
        message.require(field, Wire::Bytes);
        BEV_CHECK(valid_utf8_prefix(field.bytes) == field.bytes.size(), Data,
                  "{}: the name {} of a special piece is not UTF-8", file_, in_quotes(field.bytes));
      }
    }
  }

  void normalizer(std::string_view bytes, std::string_view what) {
    BEV_CHECK(!std::exchange(what == "the normalizer" ? has_normalizer_ : has_denormalizer_, true),
              Data, "{}: {} is there twice", file_, what);
    Message message(bytes, file_, what);
    bool rules = false;
    Field field;
    while (message.next(field)) {
      if (field.number != 2) continue;
      message.require(field, Wire::Bytes);
      BEV_CHECK(!std::exchange(rules, true), Data, "{}: {} has rules twice", file_, what);
      if (field.bytes.empty()) continue;
      const std::string fault = charsmap_fault(field.bytes);
      BEV_CHECK(fault.empty(), Data, "{}: the table of {} is damaged: {}", file_, what, fault);
    }
  }

  std::string_view file_;
  SentencePieceFacts facts_;
  std::unordered_set<std::string_view> texts_;
  std::bitset<256> bytes_;  // that are pieces
  int unknown_ = 0;
  bool has_trainer_ = false, has_normalizer_ = false, has_denormalizer_ = false;
};

}  // namespace

SentencePieceFacts read_sentencepiece_facts(std::string_view bytes, std::string_view name) {
  return ModelReader(name).read(bytes);
}

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
class DoubleArrayUnit {
 public:
  explicit DoubleArrayUnit(uint32_t bits) : bits_(bits) {}
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

  DoubleArrayUnit unit(uint32_t at) const {
    return DoubleArrayUnit(read_u32(units_, size_t{at} * 4));
  }
  bool inside(uint32_t at) const { return at < units_.size() / 4; }

  void open(uint32_t node) {
    const DoubleArrayUnit here = unit(node);
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
