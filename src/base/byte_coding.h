// Numbers and strings in little-endian bytes, and back with every bound checked. ByteWriter and
// ByteReader take the same list of fields, so that a message names its fields once:
//
//   void code(auto& coder, Coded<PutMessage> auto& m) {
//     coder(m.request, bounded(m.key, kKeyMost));
//   }
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"

namespace bev {

// `T` is the message that is read, or const and written.
template <class T, class Message>
concept Coded = std::same_as<std::remove_const_t<T>, Message>;

template <class T>
concept CodedNumber = std::integral<T> || std::same_as<T, double>;

// A text of which a reader accepts at most `most` bytes; the writer does not check.
struct BoundedText {
  std::string& text;
  size_t most;
};
inline BoundedText bounded(std::string& text, size_t most) { return {text, most}; }
inline std::string_view bounded(const std::string& text, size_t) { return text; }

class ByteWriter {
 public:
  void operator()(const auto&... fields) { (write(fields), ...); }
  // `code` writes one entry.
  void list(const auto& entries, size_t, auto code) {
    write(static_cast<uint32_t>(entries.size()));
    for (const auto& entry : entries) code(entry);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void write(CodedNumber auto value) {
    if constexpr (std::same_as<decltype(value), double>) {
      write(std::bit_cast<uint64_t>(value));
    } else {
      std::array<char, sizeof value> bytes;
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xFF);
      bytes_.append(bytes.data(), bytes.size());
    }
  }
  void write(std::string_view text) {
    write(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }

  std::string bytes_;
};

// A Comm error when the bytes are not what is asked for.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  void operator()(auto&&... fields) { (read(fields), ...); }
  // `code` reads one entry, which takes at least `each` bytes: a count that the bytes cannot hold
  // is not allocated.
  template <class T>
  void list(std::vector<T>& entries, size_t each, auto code) {
    const auto count = number<uint32_t>();
    BEV_CHECK(count <= rest_.size() / each, Comm, "{} entries in {} bytes", count, rest_.size());
    entries.resize(count);
    for (T& entry : entries) code(entry);
  }
  template <CodedNumber T>
  T number() {
    T value{};
    read(value);
    return value;
  }
  void expect_end() const {
    BEV_CHECK(rest_.empty(), Comm, "{} bytes after the end of a message", rest_.size());
  }

 private:
  template <CodedNumber T>
  void read(T& value) {
    if constexpr (std::same_as<T, double>) {
      value = std::bit_cast<double>(number<uint64_t>());
    } else if constexpr (std::same_as<T, bool>) {
      const auto bits = number<uint8_t>();
      BEV_CHECK(bits <= 1, Comm, "{} is neither yes nor no", bits);
      value = bits == 1;
    } else {
      const std::string_view bytes = take(sizeof(T));
      uint64_t bits = 0;
      for (size_t i = 0; i < sizeof(T); ++i)
        bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
      value = static_cast<T>(bits);
    }
  }
  void read(const BoundedText& field) {
    const auto size = number<uint32_t>();
    BEV_CHECK(size <= field.most, Comm, "a text of {} bytes where {} are the most", size,
              field.most);
    field.text = take(size);
  }
  std::string_view take(size_t bytes) {
    BEV_CHECK(bytes <= rest_.size(), Comm, "a message ends {} bytes early", bytes - rest_.size());
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
};

// The alternative of a variant with this index, to be read. REQUIRES: there is one.
template <class Variant, size_t kIndex = 0>
Variant alternative(size_t index) {
  if constexpr (kIndex + 1 < std::variant_size_v<Variant>)
    if (index != kIndex) return alternative<Variant, kIndex + 1>(index);
  return Variant(std::in_place_index<kIndex>);
}

}  // namespace bev
