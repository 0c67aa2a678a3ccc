#include "app/cli/input_text.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace bev::app {

namespace {

std::string read_stdin() {
  std::string text;
  std::array<char, 1 << 16> chunk;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    BEV_CHECK(got >= 0, Data, "cannot read stdin: {}", std::strerror(errno));
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<size_t>(got));
  }
}

}  // namespace

WholeInput::WholeInput(const std::string& path) : name_(path == "-" ? "stdin" : path) {
  if (path == "-")
    piped_ = read_stdin();
  else
    file_.emplace(path);
}

std::string_view WholeInput::text() const {
  if (!file_) return piped_;
  return {reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size()};
}

}  // namespace bev::app
