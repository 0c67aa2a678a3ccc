#include "net/address.h"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"

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

}  // namespace bev
