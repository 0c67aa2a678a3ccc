#include "net/secure_link.h"

#include <algorithm>
#include <utility>

namespace bev {

namespace {

constexpr size_t kAhead = size_t{256} << 10;  // bytes that are framed before they can be written

}  // namespace

SecureLink::SecureLink(LinkRole role, const HmacKey& secret, size_t message_most)
    : handshake_(role, secret), message_most_(message_most), out_(handshake_.opening()) {}

void SecureLink::receive(std::span<const std::byte> bytes) {
  while (!is_open() && !bytes.empty()) {
    const size_t taken = std::min(bytes.size(), handshake_.expected() - in_.size());
    in_.append(reinterpret_cast<const char*>(bytes.data()), taken);
    bytes = bytes.subspan(taken);
    if (in_.size() < handshake_.expected()) return;
    const std::string whole = std::exchange(in_, {});
    handshake_.receive(std::as_bytes(std::span(whole)), out_);
    if (handshake_.is_over()) {
      reader_.emplace(handshake_.keys().receiving, message_most_);
      writer_.emplace(handshake_.keys().sending);
    }
  }
  if (!bytes.empty()) reader_->add(bytes);
}

std::optional<std::string> SecureLink::next() { return is_open() ? reader_->next() : std::nullopt; }

std::string_view SecureLink::outgoing() {
  if (out_at_ == out_.size()) {
    out_.clear();
    out_at_ = 0;
  }
  while (writer_ && !writer_->is_empty() && out_.size() - out_at_ < kAhead) writer_->write(out_);
  return std::string_view(out_).substr(out_at_);
}

}  // namespace bev
