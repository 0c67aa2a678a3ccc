// Which process listens on a port of this machine.
#pragma once

#include <string>

namespace bev {

// "bevatron (pid 4711)"; empty when the system does not tell.
std::string port_owner(int port);

}  // namespace bev
