// The network interfaces of this machine.
#pragma once

#include <string>
#include <vector>

namespace bev {

struct Interface {
  std::string name, address;
};

// Those that are up, with one entry for each address.
std::vector<Interface> interfaces();
// "lo 127.0.0.1, eth0 10.0.0.7"
std::string interfaces_text();

// What this machine calls itself.
std::string host_name();

// The address to bind for an interface ("eth0"; version 4 where it has one), an address or the name
// of this machine. A Comm error lists what there is.
std::string local_address(const std::string& interface_or_address);

// The name of the interface that is called so or has that address. A Comm error as above.
std::string interface_name(const std::string& interface_or_address);

// The address of this machine from which packets to that host leave. Sends nothing.
std::string address_towards(const std::string& host);

}  // namespace bev
