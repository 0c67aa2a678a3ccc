#include <utility>

#include "control/control.h"
#include "net/address.h"
#include "net/listen.h"

namespace bev {

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
