#include "net/address.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "net/socket.h"

namespace bev {

namespace {

Address ask(int socket, int (*question)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* data = reinterpret_cast<sockaddr*>(&storage);
  return question(socket, data, &size) == 0 ? Address(data, size) : Address();
}

}  // namespace

Address::Address(const sockaddr* data, socklen_t size)
    : size_(std::min(size, static_cast<socklen_t>(sizeof storage_))) {
  std::memcpy(&storage_, data, size_);
}

int Address::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage_).sin6_port);
  return 0;
}

bool Address::is_loopback() const {
  if (family() == AF_INET) {
    const auto& inet = reinterpret_cast<const sockaddr_in&>(storage_);
    return ntohl(inet.sin_addr.s_addr) >> 24 == 127;
  }
  return family() == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr);
}

std::string Address::host() const {
  std::array<char, NI_MAXHOST> name{};
  const int failure =
      ::getnameinfo(data(), size_, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST);
  return failure == 0 ? name.data() : "an unknown address";
}

std::string Address::text() const { return host_and_port(host(), port()); }

std::string host_and_port(const std::string& host, int port) {
  const bool brackets = host.find(':') != std::string::npos && !host.starts_with('[');
  return brackets ? format("[{}]:{}", host, port) : format("{}:{}", host, port);
}

std::vector<Address> resolve(const std::string& host, int port) {
  BEV_CHECK(!host.empty(), Comm, "the name of a host is empty");
  BEV_CHECK(port >= 0 && port <= 65535, Comm, "port {} is not one of 0 to 65535", port);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string name = brackets ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  BEV_CHECK(failure == 0, Comm, "no address is known for host {}: {}", host,
            failure == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(failure));
  std::vector<Address> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
    addresses.emplace_back(each->ai_addr, each->ai_addrlen);
  return addresses;
}

Address address_here(int socket) { return ask(socket, ::getsockname); }
Address address_there(int socket) { return ask(socket, ::getpeername); }

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
