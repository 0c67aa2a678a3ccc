#include "base/atomic_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

// A path that "out/", a relative name and a link to a directory all lead to.
fs::path real_place(const fs::path& path) {
  std::error_code error;
  fs::path place = fs::weakly_canonical(fs::absolute(path), error);
  BEV_CHECK(!error, Data, "cannot write {}: {}", path.string(), error.message());
  return place.has_filename() ? place : place.parent_path();
}

void flush_directory(const fs::path& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  ::fsync(directory);
  ::close(directory);
}

}  // namespace

AtomicDirectory::AtomicDirectory(const fs::path& target) : target_(real_place(target)) {
  const fs::path beside = target_.parent_path();
  temporary_ = beside / format(".{}.partial.{}", target_.filename().string(), ::getpid());
  std::error_code error;
  fs::create_directories(beside, error);
  if (!error) fs::remove_all(temporary_, error);
  if (!error) fs::create_directory(temporary_, error);
  BEV_CHECK(!error, Data, "cannot write {}: {}", target_.string(), error.message());
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;  // a destructor has nobody to tell
  fs::remove_all(temporary_, ignored);
}

void AtomicDirectory::commit() {
  flush_directory(temporary_);
  // An absent or empty target is replaced by a plain rename. A full one changes places with the
  // temporary directory, which the destructor then removes.
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const bool is_full = errno == ENOTEMPTY || errno == EEXIST;
    BEV_CHECK(is_full && ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(),
                                     RENAME_EXCHANGE) == 0,
              Data, "cannot write {}: {}", target_.string(), std::strerror(errno));
  }
  flush_directory(target_.parent_path());
}

}  // namespace bev
