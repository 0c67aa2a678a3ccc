// XXH3, the checksum of everything a checkpoint holds. It finds damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bev {

// The checksum of bytes that come piece by piece.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

uint64_t checksum_of(std::span<const std::byte> bytes);
uint64_t checksum_of(std::string_view text);

// 16 hexadecimal digits, and back; none where the text is something else.
std::string checksum_text(uint64_t checksum);
std::optional<uint64_t> parse_checksum(std::string_view text);

}  // namespace bev
