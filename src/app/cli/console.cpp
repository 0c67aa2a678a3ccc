#include "app/cli/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"

namespace bev::app {

Console::Console(bool prints, const std::filesystem::path& file) : prints_(prints) {
  if (file.empty()) return;
  std::error_code ignored;  // open() says what is wrong
  std::filesystem::create_directories(file.parent_path(), ignored);
  file_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  BEV_CHECK(file_ >= 0, Data, "cannot write {}: {}", file.string(), std::strerror(errno));
}

Console::~Console() {
  if (file_ >= 0) ::close(file_);
}

void Console::log_text(const std::string& text) const {
  if (prints_) print_stderr("{}", text);
  log_to_file(text);
}

void Console::print_record(const std::string& line) const {
  if (prints_) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    // The log is read while it is written.
    std::fflush(stdout);
  }
  log_to_file(line + "\n");
}

void Console::alert(const Console* console, int rank, const std::string& text) {
  const std::string line = rank == 0 ? format("bevatron: alert: {}\n", text)
                                     : format("bevatron: alert: rank {}: {}\n", rank, text);
  print_stderr("{}", line);
  if (console != nullptr) console->log_to_file(line);
}

void Console::log_to_file(const std::string& text) const {
  // A disk that is full ends no training.
  if (file_ >= 0) (void)!::write(file_, text.data(), text.size());
}

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
