#include "net/connect.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace bev {

namespace {

// Errno, 0 when it stands.
int wait_for_connection(int socket, SteadyTime deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry{.fd = socket, .events = POLLOUT, .revents = 0};
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1000)));
    if (ready < 0 && errno != EINTR) return errno;
    if (ready > 0) break;
    if (left.count() <= 0) return ETIMEDOUT;
  }
  int failure = 0;
  socklen_t size = sizeof failure;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) return errno;
  return failure;
}

// A socket that connects to a free port of its own machine may be given that port for its own end,
// and then talks to itself.
bool is_connected_to_itself(int socket) {
  return address_here(socket).text() == address_there(socket).text();
}

}  // namespace

void make_quick(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
}

Socket try_to_connect(const std::vector<Address>& addresses, SteadyTime deadline,
                      std::string& why) {
  for (const Address& address : addresses) {
    Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int failure = socket.is_open() ? 0 : errno;
    if (failure == 0 && ::connect(socket.get(), address.data(), address.size()) != 0)
      failure = errno == EINPROGRESS ? wait_for_connection(socket.get(), deadline) : errno;
    if (failure == 0 && is_connected_to_itself(socket.get())) failure = ECONNREFUSED;
    if (failure == 0) {
      make_quick(socket.get());
      return socket;
    }
    why = std::strerror(failure);
  }
  return {};
}

}  // namespace bev
