// IPv4 and IPv6 addresses, and the network interfaces of this machine.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace bev {

// An address with its port.
class Address {
 public:
  Address() = default;
  Address(const sockaddr* data, socklen_t size);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  int port() const;
  // "10.0.0.7", "fe80::1%eth0": without the port.
  std::string host() const;
  // Reaches this machine alone.
  bool is_loopback() const;
  // "10.0.0.7:29500", "[::1]:29500"
  std::string text() const;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

// "host:port", with brackets around an address of version 6.
std::string host_and_port(const std::string& host, int port);

// All addresses of a name, or the address that `host` is (brackets may stand around it), in the
// order of the system. A Comm error says why there is none.
std::vector<Address> resolve(const std::string& host, int port);

// This end of a socket, and the other one. Empty when the system does not tell.
Address address_here(int socket);
Address address_there(int socket);

// The network interfaces of this machine.

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
