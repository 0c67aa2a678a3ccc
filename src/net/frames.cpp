#include "net/frames.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace bev {

namespace {

constexpr size_t kTagBytes = 32, kHeadBytes = 4 + kTagBytes;
// Small enough for others to have their turn.
constexpr size_t kPiece = size_t{64} << 10;

template <size_t Bytes>
std::array<std::byte, Bytes> little_endian(uint64_t value) {
  std::array<std::byte, Bytes> bytes{};
  for (std::byte& each : bytes) {
    each = static_cast<std::byte>(value & 0xFF);
    value >>= 8;
  }
  return bytes;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void append(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

void FrameWriter::add(std::shared_ptr<const std::string> message) {
  messages_.push_back(std::move(message));
}

void FrameWriter::write(std::string& out) {
  const std::string& message = *messages_.front();
  const std::string_view piece = std::string_view(message).substr(at_, kPiece);
  at_ += piece.size();
  const std::array more{static_cast<std::byte>(at_ < message.size())};
  append(out, little_endian<4>(piece.size() + 1));
  append(out, key_.sign({little_endian<8>(number_++), more, bytes_of(piece)}));
  append(out, more);
  out += piece;
  if (at_ < message.size()) return;
  messages_.pop_front();
  at_ = 0;
}

void FrameReader::add(std::span<const std::byte> bytes) { append(bytes_, bytes); }

bool FrameReader::read_frame() {
  const std::span<const std::byte> rest = bytes_of(bytes_).subspan(at_);
  if (rest.size() < kHeadBytes) return false;
  size_t size = 0;
  for (size_t i = 0; i < 4; ++i) size |= std::to_integer<size_t>(rest[i]) << (8 * i);
  BEV_CHECK(size >= 1 && size <= kFrameMost, Comm, "a frame of {} bytes; legal are 1 to {}", size,
            kFrameMost);
  if (rest.size() - kHeadBytes < size) return false;
  const std::span<const std::byte> body = rest.subspan(kHeadBytes, size);
  BEV_CHECK(
      same_tag(rest.subspan(4).first<kTagBytes>(), key_.sign({little_endian<8>(number_), body})),
      Comm, "frame {} has a wrong signature", number_);
  ++number_;
  BEV_CHECK(body[0] <= std::byte{1}, Comm, "frame {} has an unknown mark", number_ - 1);
  BEV_CHECK(message_.size() + size - 1 <= message_most_, Comm, "a message of more than {} bytes",
            message_most_);
  append(message_, body.subspan(1));
  whole_ = body[0] == std::byte{0};
  at_ += kHeadBytes + size;
  return true;
}

std::optional<std::string> FrameReader::next() {
  while (!whole_ && read_frame()) {
  }
  // What is used is dropped when it is most of what is held.
  if (at_ > bytes_.size() / 2) {
    bytes_.erase(0, at_);
    at_ = 0;
  }
  if (!whole_) return std::nullopt;
  whole_ = false;
  return std::exchange(message_, {});
}

}  // namespace bev
