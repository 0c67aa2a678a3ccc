#include "app/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace bev::app {

size_t text_columns() {
  const size_t columns = terminal_columns(STDOUT_FILENO);
  return columns == 0 ? 80 : std::clamp<size_t>(columns, 20, 100);
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) != 0; }

size_t terminal_columns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace bev::app
