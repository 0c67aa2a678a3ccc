#include "base/untrusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace bev {

namespace {

std::string_view kind_of(mode_t mode) {
  if (S_ISREG(mode)) return {};
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

std::optional<FoundFile> find_file(int folder, const std::string& name) {
  struct stat info{};
  if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return FoundFile{.stamp = {.inode = info.st_ino,
                             .seconds = info.st_mtim.tv_sec,
                             .nanoseconds = info.st_mtim.tv_nsec,
                             .bytes = info.st_size},
                   .owner = info.st_uid,
                   .other = kind_of(info.st_mode)};
}

std::optional<std::string> read_found(int folder, const std::string& name, size_t most) {
  const int file =
      ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return std::nullopt;
  struct stat info{};
  std::optional<std::string> text;
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
    text.emplace(most, '\0');
    size_t have = 0;
    while (have < most) {
      const ssize_t got = ::read(file, text->data() + have, most - have);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    text->resize(have);
  }
  ::close(file);
  return text;
}

}  // namespace bev
