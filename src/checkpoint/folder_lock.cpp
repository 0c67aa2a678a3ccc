#include "checkpoint/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/clock.h"

namespace bev {

FolderLock::FolderLock(const std::filesystem::path& folder, double patience_seconds) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  BEV_CHECK(!error, Data, "cannot make the folder {}: {}", folder.string(), error.message());
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) return;
  const double start = seconds_now();
  do {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (seconds_now() - start < patience_seconds);
  ::close(descriptor_);
  throw Error(
      ErrorKind::Data,
      format("another run saves its checkpoints into {}; two would remove each other's: wait "
             "for its end, or choose another checkpoint.save",
             folder.string()));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace bev
