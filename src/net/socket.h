// Sockets: descriptors that close themselves, connecting, listening, EventFd.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "net/address.h"

namespace bev {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      close();
      descriptor_ = other.release();
    }
    return *this;
  }

  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }
  void close();

 private:
  int descriptor_ = -1;
};

// Wakes a thread that polls.

class EventFd {
 public:
  EventFd();

  // To be polled for input.
  int descriptor() const { return event_.get(); }
  // From any thread.
  void raise() const;
  void clear() const;

 private:
  Socket event_;
};

// A connection to a socket that listens, or will soon.

using SteadyTime = std::chrono::steady_clock::time_point;

// Connects to the first address that answers. Not open when none does before the deadline; `why`
// then says what the system said. The socket does not block and sends small pieces at once.
Socket try_to_connect(const std::vector<Address>& addresses, SteadyTime deadline, std::string& why);

// Does not wait for full segments, does not block.
void make_quick(int socket);

// A socket that waits for connections.

// Whether 0.0.0.0 and ::, which stand for all addresses of this machine, may be listened on.
enum class EveryAddress : uint8_t { Refused, Allowed };

// Listens on that address only, on any free port when `port` is 0; does not block. A Comm error
// says who has the port, as far as the system tells, or which addresses this machine has.
Socket listen_on(const std::string& host, int port,
                 EveryAddress every_address = EveryAddress::Refused);

// Where the first rank listens, taken before anybody is told about it.
class ListenPort {
 public:
  // Binds that address only. `port` 0: any free one. A Comm error says who has it, as far as the
  // system tells, or which addresses this machine has.
  ListenPort(const std::string& host, int port);
  ~ListenPort();
  ListenPort(ListenPort&&) noexcept;
  ListenPort& operator=(ListenPort&&) noexcept;

  int port() const { return port_; }
  // The listening socket, which is the caller's from now on.
  int release();

 private:
  int descriptor_ = -1, port_ = 0;
};

// Which process listens on a port of this machine.

// "bevatron (pid 4711)"; empty when the system does not tell.
std::string port_owner(int port);

}  // namespace bev
