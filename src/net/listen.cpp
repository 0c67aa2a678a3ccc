#include "net/listen.h"

#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "net/address.h"
#include "net/interfaces.h"
#include "net/port_owner.h"

namespace bev {

namespace {

constexpr int kWaiting = 4096;  // connections that are not accepted yet: a whole job may come at
                                // once

// Errno, 0 when it listens.
int try_to_listen(const Address& address, Socket& socket) {
  socket = Socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return errno;
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), address.data(), address.size()) != 0) return errno;
  return ::listen(socket.get(), kWaiting) == 0 ? 0 : errno;
}

bool is_every_address(const Address& address) {
  return address.host() == "0.0.0.0" || address.host() == "::";
}

std::string advice(int failure, int port) {
  if (failure == EADDRINUSE) {
    const std::string owner = port_owner(port);
    return owner.empty() ? "" : format("; {} has it", owner);
  }
  if (failure == EADDRNOTAVAIL) return format("; this machine has {}", interfaces_text());
  return "";
}

}  // namespace

Socket listen_on(const std::string& host, int port, EveryAddress every_address) {
  int failure = 0;
  for (const Address& address : resolve(host, port)) {
    BEV_CHECK(every_address == EveryAddress::Allowed || !is_every_address(address), Comm,
              "{} stands for all addresses of this machine; name one of {}", host,
              interfaces_text());
    Socket socket;
    const int outcome = try_to_listen(address, socket);
    if (outcome == 0) return socket;
    if (failure == 0) failure = outcome;
  }
  throw Error(ErrorKind::Comm, format("cannot listen at {}: {}{}", host_and_port(host, port),
                                      std::strerror(failure), advice(failure, port)));
}

ControlPort::ControlPort(const std::string& host, int port) {
  Socket socket = listen_on(host, port);
  port_ = address_here(socket.get()).port();
  descriptor_ = socket.release();
}

ControlPort::~ControlPort() { Socket(release()).close(); }

ControlPort::ControlPort(ControlPort&& other) noexcept
    : descriptor_(other.release()), port_(other.port_) {}

ControlPort& ControlPort::operator=(ControlPort&& other) noexcept {
  if (this != &other) {
    Socket(release()).close();
    descriptor_ = other.release();
    port_ = other.port_;
  }
  return *this;
}

int ControlPort::release() { return std::exchange(descriptor_, -1); }

}  // namespace bev
