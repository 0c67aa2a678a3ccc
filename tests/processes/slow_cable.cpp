// A cable between two network namespaces that is a program, for systems without netem:
//
//   slow_cable /run/netns/A /run/netns/B NAME
//
// makes an interface NAME in both and carries packets between them, at once, or 200 ms late after
// SIGUSR1 until SIGUSR2.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kDelay{200};

volatile std::sig_atomic_t is_slow = 0;

extern "C" void change_speed(int signal) { is_slow = signal == SIGUSR1 ? 1 : 0; }

// Packets of one direction, in their order.
struct Direction {
  struct Packet {
    Clock::time_point due;
    std::string bytes;
  };
  int from, to;
  std::deque<Packet> packets{};
};

// The interface lives as long as the descriptor.
int open_interface(const char* space, const char* name) {
  const int own = ::open(space, O_RDONLY | O_CLOEXEC);
  if (own < 0 || ::setns(own, CLONE_NEWNET) != 0) return -1;
  ::close(own);
  const int tun = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  return tun >= 0 && ::ioctl(tun, TUNSETIFF, &request) == 0 ? tun : -1;
}

void carry(Direction& direction) {
  std::array<char, 65536> bytes{};
  for (;;) {
    const ssize_t count = ::read(direction.from, bytes.data(), bytes.size());
    if (count <= 0) break;
    const auto due = Clock::now() + (is_slow != 0 ? kDelay : std::chrono::milliseconds(0));
    direction.packets.push_back({due, std::string(bytes.data(), static_cast<size_t>(count))});
  }
  while (!direction.packets.empty() && direction.packets.front().due <= Clock::now()) {
    const std::string& packet = direction.packets.front().bytes;
    // What cannot be delivered is lost, as on any cable.
    (void)!::write(direction.to, packet.data(), packet.size());
    direction.packets.pop_front();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  struct sigaction action{};
  action.sa_handler = change_speed;
  ::sigaction(SIGUSR1, &action, nullptr);
  ::sigaction(SIGUSR2, &action, nullptr);
  const int a = open_interface(argv[1], argv[3]), b = open_interface(argv[2], argv[3]);
  if (a < 0 || b < 0) {
    std::perror("slow_cable");
    return 1;
  }
  Direction there{a, b}, back{b, a};
  for (;;) {
    carry(there);
    carry(back);
    const bool is_empty = there.packets.empty() && back.packets.empty();
    std::array<pollfd, 2> ends{pollfd{.fd = a, .events = POLLIN, .revents = 0},
                               pollfd{.fd = b, .events = POLLIN, .revents = 0}};
    ::poll(ends.data(), ends.size(), is_empty ? -1 : 1);
  }
}
