#include "app/cli/stdio_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

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

ResultFile::ResultFile(std::string path) : path_(std::move(path)) {
  if (is_stdout()) return;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  is_new_ = descriptor_ >= 0;
  if (!is_new_ && errno == EEXIST)
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  BEV_CHECK(descriptor_ >= 0, Data, "cannot write {}: {}", path_, std::strerror(errno));
}

ResultFile::~ResultFile() {
  if (descriptor_ < 0) return;
  if (is_new_ && !has_result_) ::unlink(path_.c_str());
  ::close(descriptor_);
}

void ResultFile::write(std::string_view text) {
  if (is_stdout()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return;
  }
  if (!has_result_) empty_file();
  has_result_ = true;
  while (!text.empty()) {
    const ssize_t put = ::write(descriptor_, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    BEV_CHECK(put > 0, Data, "cannot write {}: {}", path_, std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(put));
  }
}

// Pipes and devices have no length.
void ResultFile::empty_file() const {
  struct stat facts{};
  if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  BEV_CHECK(::ftruncate(descriptor_, 0) == 0, Data, "cannot write {}: {}", path_,
            std::strerror(errno));
}

}  // namespace bev::app
