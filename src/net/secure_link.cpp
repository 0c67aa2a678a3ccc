#include "net/secure_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/format.h"

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

namespace {

constexpr size_t kReadAtOnce = size_t{64} << 10;
constexpr int kFairShare = 8;  // reads before others have their turn

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Reading SecureConnection::receive(FunctionRef<void(std::string message)> take) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kReadAtOnce);
  for (int turn = 0; turn < kFairShare; ++turn) {
    const ssize_t got = ::recv(socket_.get(), buffer.get(), kReadAtOnce, MSG_DONTWAIT);
    if (got == 0) return Reading::Closed;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block()) return Reading::Waits;
    BEV_CHECK(got > 0, Comm, "{}", std::strerror(errno));
    const auto bytes = static_cast<size_t>(got);
    bytes_read_ += bytes;
    link_.receive({buffer.get(), bytes});
    while (std::optional<std::string> message = link_.next()) take(std::move(*message));
    // The rest would block, or makes the descriptor ready again.
    if (bytes < kReadAtOnce) return Reading::Waits;
  }
  return Reading::Waits;
}

bool SecureConnection::flush() {
  for (;;) {
    const std::string_view out = link_.outgoing();
    if (out.empty()) return true;
    const ssize_t put = ::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && would_block()) return false;
    BEV_CHECK(put >= 0, Comm, "{}", std::strerror(errno));
    link_.written(static_cast<size_t>(put));
  }
}

void SecureConnection::close_sending() { ::shutdown(socket_.get(), SHUT_WR); }

namespace {

constexpr uint64_t kOneByOne = 5;
constexpr std::chrono::seconds kPause{10};

}  // namespace

void RefusalLog::refused(const std::string& who, const std::string& why) {
  if (noted_ == kOneByOne) {
    ++not_noted_;
    return;
  }
  ++noted_;
  note_(format("refused a connection from {}: {}", who, why));
}

void RefusalLog::tick(Time now) {
  if (not_noted_ == 0 || now < next_) return;
  next_ = now + kPause;
  note_(format("refused {} more connection{}", not_noted_, not_noted_ == 1 ? "" : "s"));
  not_noted_ = 0;
}

}  // namespace bev
