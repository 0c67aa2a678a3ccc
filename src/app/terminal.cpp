#include "app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace bev::app {

bool is_terminal(int descriptor) { return ::isatty(descriptor) != 0; }

size_t terminal_columns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace bev::app
