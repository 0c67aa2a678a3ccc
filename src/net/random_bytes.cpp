#include "net/random_bytes.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace bev {

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    BEV_CHECK(got > 0, Device, "the system gives no random bytes: {}", std::strerror(errno));
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

}  // namespace bev
