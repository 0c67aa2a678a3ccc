#include "net/socket.h"

#include <unistd.h>

namespace bev {

void Socket::close() {
  if (is_open()) ::close(release());
}

}  // namespace bev
