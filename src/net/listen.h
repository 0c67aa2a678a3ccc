// A socket that waits for connections.
#pragma once

#include <cstdint>
#include <string>

#include "net/socket.h"

namespace bev {

// Whether 0.0.0.0 and ::, which stand for all addresses of this machine, may be listened on.
enum class EveryAddress : uint8_t { Refused, Allowed };

// Listens on that address only, on any free port when `port` is 0; does not block. A Comm error
// says who has the port, as far as the system tells, or which addresses this machine has.
Socket listen_on(const std::string& host, int port,
                 EveryAddress every_address = EveryAddress::Refused);

// Where the first rank listens, taken before anybody is told about it.
class ControlPort {
 public:
  // Binds that address only. `port` 0: any free one. A Comm error says who has it, as far as the
  // system tells, or which addresses this machine has.
  ControlPort(const std::string& host, int port);
  ~ControlPort();
  ControlPort(ControlPort&&) noexcept;
  ControlPort& operator=(ControlPort&&) noexcept;

  int port() const { return port_; }
  // The listening socket, which is the caller's from now on.
  int release();

 private:
  int descriptor_ = -1, port_ = 0;
};

}  // namespace bev
