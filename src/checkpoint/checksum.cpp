#include "checkpoint/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>

#include "base/format.h"

namespace bev {

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }

Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->xxh3); }

uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t checksum_of(std::string_view text) {
  return checksum_of(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

std::string checksum_text(uint64_t checksum) { return format("{:016x}", checksum); }

std::optional<uint64_t> parse_checksum(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size() || text.size() != 16)
    return std::nullopt;
  return value;
}

}  // namespace bev
