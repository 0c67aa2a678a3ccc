#include "net/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/check.h"
#include "base/format.h"
#include "base/system_file.h"
#include "net/address.h"

namespace bev {

EventFd::EventFd() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  BEV_CHECK(event_.is_open(), Comm, "cannot make an eventfd: {}", std::strerror(errno));
}

void EventFd::raise() const { ::eventfd_write(event_.get(), 1); }

void EventFd::clear() const {
  eventfd_t value = 0;
  ::eventfd_read(event_.get(), &value);
}

namespace {

// Errno, 0 when it stands.
int wait_for_connection(int socket, SteadyTime deadline) {
  int failure = 0;
  while ((failure = wait_for(socket, POLLOUT, deadline)) == EAGAIN)
    if (std::chrono::steady_clock::now() >= deadline) return ETIMEDOUT;
  if (failure != 0) return failure;
  socklen_t size = sizeof failure;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) return errno;
  return failure;
}

// A socket that connects to a free port of its own machine may be given that port for its own end,
// and then talks to itself.
bool is_connected_to_itself(int socket) {
  return address_here(socket).text() == address_there(socket).text();
}

}  // namespace

int wait_for(int socket, int events, SteadyTime deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd entry{.fd = socket, .events = static_cast<short>(events), .revents = 0};
  const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1000)));
  if (ready > 0) return 0;
  return ready == 0 || errno == EINTR ? EAGAIN : errno;
}

void make_quick(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
}

Socket try_to_connect(const std::vector<Address>& addresses, SteadyTime deadline,
                      std::string& why) {
  for (const Address& address : addresses) {
    Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int failure = socket.is_open() ? 0 : errno;
    if (failure == 0 && ::connect(socket.get(), address.data(), address.size()) != 0)
      failure = errno == EINPROGRESS ? wait_for_connection(socket.get(), deadline) : errno;
    if (failure == 0 && is_connected_to_itself(socket.get())) failure = ECONNREFUSED;
    if (failure == 0) {
      make_quick(socket.get());
      return socket;
    }
    why = std::strerror(failure);
  }
  return {};
}

namespace {

constexpr int kWaiting = 4096;  // connections that are not accepted yet: a whole job may come at
                                // once

// Errno, 0 when it listens.
int try_to_listen(const Address& address, Socket& socket) {
  socket = Socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return errno;
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), address.data(), address.size()) != 0) return errno;
  return ::listen(socket.get(), kWaiting) == 0 ? 0 : errno;
}

bool is_every_address(const Address& address) {
  return address.host() == "0.0.0.0" || address.host() == "::";
}

std::string advice(int failure, int port) {
  if (failure == EADDRINUSE) {
    const std::string owner = port_owner(port);
    return owner.empty() ? "" : format("; {} has it", owner);
  }
  if (failure == EADDRNOTAVAIL) return format("; this machine has {}", interfaces_text());
  return "";
}

}  // namespace

Socket listen_on(const std::string& host, int port, EveryAddress every_address) {
  int failure = 0;
  for (const Address& address : resolve(host, port)) {
    BEV_CHECK(every_address == EveryAddress::Allowed || !is_every_address(address), Comm,
              "{} stands for all addresses of this machine; name one of {}", host,
              interfaces_text());
    Socket socket;
    const int outcome = try_to_listen(address, socket);
    if (outcome == 0) return socket;
    if (failure == 0) failure = outcome;
  }
  throw Error(ErrorKind::Comm, format("cannot listen at {}: {}{}", host_and_port(host, port),
                                      std::strerror(failure), advice(failure, port)));
}

namespace fs = std::filesystem;

namespace {

// A row of /proc/net/tcp: number, own address:port, other address:port, state, and the inode as the
// tenth word. State 0A listens.
void add_inodes(const char* table, int port, std::set<std::string>& inodes) {
  std::ifstream file(table);
  const std::string ending = format(":{:04X}", port);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string number, here, there, state, skipped, inode;
    words >> number >> here >> there >> state;
    for (int i = 0; i < 5; ++i) words >> skipped;
    if (words >> inode && here.ends_with(ending) && state == "0A")
      inodes.insert(format("socket:[{}]", inode));
  }
}

bool holds_any(const fs::path& process, const std::set<std::string>& inodes) {
  std::error_code failure;
  for (fs::directory_iterator each(process / "fd", failure), end; !failure && each != end;
       each.increment(failure)) {
    std::error_code unreadable;
    if (inodes.contains(fs::read_symlink(each->path(), unreadable).string())) return true;
  }
  return false;
}

}  // namespace

std::string port_owner(int port) {
  std::set<std::string> inodes;
  add_inodes("/proc/net/tcp", port, inodes);
  add_inodes("/proc/net/tcp6", port, inodes);
  if (inodes.empty()) return "";
  std::error_code failure;
  for (fs::directory_iterator each("/proc", failure), end; !failure && each != end;
       each.increment(failure)) {
    const std::string pid = each->path().filename().string();
    if (!std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
      continue;
    if (!holds_any(each->path(), inodes)) continue;
    const std::string name = system_line(each->path() / "comm");
    return format("{} (pid {})", name.empty() ? "a process" : name, pid);
  }
  return "";
}

}  // namespace bev
