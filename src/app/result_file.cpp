#include "app/result_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace bev::app {

ResultFile::ResultFile(std::string path) : path_(std::move(path)) {
  if (is_stdout()) return;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  BEV_CHECK(descriptor_ >= 0, Data, "cannot write {}: {}", path_, std::strerror(errno));
}

ResultFile::~ResultFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ResultFile::write(std::string_view text) {
  if (is_stdout()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return;
  }
  while (!text.empty()) {
    const ssize_t put = ::write(descriptor_, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    BEV_CHECK(put > 0, Data, "cannot write {}: {}", path_, std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(put));
  }
}

}  // namespace bev::app
