#include "net/event_fd.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace bev {

WakeSignal::WakeSignal() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  BEV_CHECK(event_.is_open(), Comm, "cannot make an eventfd: {}", std::strerror(errno));
}

void WakeSignal::raise() const { ::eventfd_write(event_.get(), 1); }

void WakeSignal::clear() const {
  eventfd_t value = 0;
  ::eventfd_read(event_.get(), &value);
}

}  // namespace bev
