// A connection to a socket that listens, or will soon.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "net/address.h"
#include "net/socket.h"

namespace bev {

using SteadyTime = std::chrono::steady_clock::time_point;

// Connects to the first address that answers. Not open when none does before the deadline; `why`
// then says what the system said. The socket does not block and sends small pieces at once.
Socket try_to_connect(const std::vector<Address>& addresses, SteadyTime deadline, std::string& why);

// Does not wait for full segments, does not block.
void make_quick(int socket);

}  // namespace bev
