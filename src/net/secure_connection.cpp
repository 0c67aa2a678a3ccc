#include "net/secure_connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace bev {

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

}  // namespace bev
