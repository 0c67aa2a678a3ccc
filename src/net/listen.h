// A socket that waits for connections.
#pragma once

#include <string>

#include "net/socket.h"

namespace bev {

// Listens on that address only, on any free port when `port` is 0; does not block. A Comm error
// says who has the port, as far as the system tells, or which addresses this machine has.
Socket listen_on(const std::string& host, int port);

}  // namespace bev
