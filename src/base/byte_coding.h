// Integers and texts in little-endian bytes, and back with every bound checked.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.h"

namespace bev {

class ByteWriter {
 public:
  template <std::integral T>
  void number(T value) {
    auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes_ += static_cast<char>(static_cast<uint64_t>(bits) >> (8 * i) & 0xFF);
  }
  void number(double value) { number(std::bit_cast<uint64_t>(value)); }
  void text(std::string_view text) {
    number(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// A Comm error when the bytes are not what is asked for.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <std::integral T>
  T number() {
    const std::string_view bytes = take(sizeof(T));
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    return static_cast<T>(bits);
  }
  double real() { return std::bit_cast<double>(number<uint64_t>()); }
  std::string text(size_t most) {
    const auto size = number<uint32_t>();
    BEV_CHECK(size <= most, Comm, "a text of {} bytes where {} are the most", size, most);
    return std::string(take(size));
  }
  // Of entries that take at least `each` bytes: what cannot follow is not allocated.
  size_t count(size_t each) {
    const auto count = number<uint32_t>();
    BEV_CHECK(count <= rest_.size() / each, Comm, "{} entries in {} bytes", count, rest_.size());
    return count;
  }
  void expect_end() const {
    BEV_CHECK(rest_.empty(), Comm, "{} bytes behind the end of a message", rest_.size());
  }

 private:
  std::string_view take(size_t bytes) {
    BEV_CHECK(bytes <= rest_.size(), Comm, "a message ends {} bytes early", bytes - rest_.size());
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace bev
