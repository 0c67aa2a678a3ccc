#include "net/interfaces.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "net/address.h"
#include "net/socket.h"

namespace bev {

namespace {

constexpr int kSomePort = 9;
constexpr unsigned kUp = 1;  // IFF_UP

bool is_version_4(const std::string& address) { return address.find(':') == std::string::npos; }

// None for what is no name.
std::vector<std::string> hosts_of(const std::string& name) {
  try {
    std::vector<std::string> hosts;
    for (const Address& address : resolve(name, 0)) hosts.push_back(address.host());
    return hosts;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & kUp) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    all.push_back({each->ifa_name, Address(each->ifa_addr, size).host()});
  }
  return all;
}

std::string interfaces_text() {
  std::string text;
  for (const Interface& each : interfaces())
    text += format("{}{} {}", text.empty() ? "" : ", ", each.name, each.address);
  return text.empty() ? "no network interface" : text;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string local_address(const std::string& interface_or_address) {
  const std::vector<Interface> all = interfaces();
  std::string found;
  for (const Interface& each : all) {
    if (each.name != interface_or_address) continue;
    if (is_version_4(each.address)) return each.address;
    if (found.empty()) found = each.address;
  }
  if (!found.empty()) return found;
  for (const std::string& host : hosts_of(interface_or_address)) {
    if (std::any_of(all.begin(), all.end(), [&](const Interface& i) { return i.address == host; }))
      return host;
  }
  throw Error(ErrorKind::Comm, format("{} is no interface or address of this machine, which has {}",
                                      interface_or_address, interfaces_text()));
}

std::string interface_name(const std::string& interface_or_address) {
  const std::string address = local_address(interface_or_address);
  for (const Interface& each : interfaces()) {
    if (each.address == address) return each.name;
  }
  throw Error(ErrorKind::Comm, format("{} was an address of this machine, which now has {}",
                                      address, interfaces_text()));
}

std::string address_towards(const std::string& host) {
  int failure = 0;
  for (const Address& address : resolve(host, kSomePort)) {
    const Socket socket(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.is_open() && ::connect(socket.get(), address.data(), address.size()) == 0)
      return address_here(socket.get()).host();
    failure = errno;
  }
  throw Error(ErrorKind::Comm, format("no way leads to host {}: {}; this machine has {}", host,
                                      std::strerror(failure), interfaces_text()));
}

}  // namespace bev
