// Sockets: connecting, listening, EventFd.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/descriptor.h"
#include "net/address.h"

namespace bev {

using Socket = Descriptor;

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

// Waits for events of poll(2), at most a second and until the deadline. 0: there is one. EAGAIN:
// not yet; else errno.
int wait_for(int socket, int events, SteadyTime deadline);

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
  ListenPort(const std::string& host, int port)
      : socket_(listen_on(host, port)), port_(address_here(socket_.get()).port()) {}

  int port() const { return port_; }
  // The listening socket, which is the caller's from now on.
  int release() { return socket_.release(); }

 private:
  Socket socket_;
  int port_;
};

// Which process listens on a port of this machine.

// "bevatron (pid 4711)"; empty when the system does not tell.
std::string port_owner(int port);

}  // namespace bev
