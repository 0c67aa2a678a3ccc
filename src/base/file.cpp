#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace bev {

namespace {

// Opens for reading and returns the descriptor and the size of a regular file.
std::pair<int, size_t> open_regular(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  BEV_CHECK(descriptor >= 0, Data, "cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat info{};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    throw Error(ErrorKind::Data, format("{} is not a regular file", path.string()));
  }
  return {descriptor, static_cast<size_t>(info.st_size)};
}

// What a network file system reports while its server is away.
bool may_pass(int reason) {
  return reason == EIO || reason == EAGAIN || reason == ESTALE || reason == ETIMEDOUT ||
         reason == ENETDOWN || reason == ENETUNREACH || reason == EHOSTDOWN ||
         reason == EHOSTUNREACH || reason == ECONNRESET || reason == ENOTCONN;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const auto [descriptor, size] = open_regular(path);
  size_ = size;
  if (size_ > 0) {
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int reason = errno;
    ::close(descriptor);
    BEV_CHECK(address != MAP_FAILED, Data, "cannot map {}: {}", path.string(),
              std::strerror(reason));
    data_ = static_cast<const std::byte*>(address);
  } else {
    ::close(descriptor);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::prefetch(size_t offset, size_t count) const {
  advise(offset, count, MADV_WILLNEED);
}

void MappedFile::release(size_t offset, size_t count) const {
  advise(offset, count, MADV_DONTNEED);
}

// The pages that begin in the range: of ranges in a row each page is in one.
void MappedFile::advise(size_t offset, size_t count, int advice) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t end = std::min(size_, offset + count) / page * page;
  const size_t begin = offset / page * page;
  if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, advice);
}

PositionedFile::PositionedFile(const std::filesystem::path& path) : path_(path) {
  std::tie(descriptor_, size_) = open_regular(path);
}

PositionedFile::~PositionedFile() { ::close(descriptor_); }

void PositionedFile::read(size_t offset, std::span<std::byte> out) const {
  read_with_retries(path_, offset, out, [this](std::byte* to, size_t count, size_t at) {
    return ::pread(descriptor_, to, count, static_cast<off_t>(at));
  });
}

void read_with_retries(const std::filesystem::path& path, size_t offset, std::span<std::byte> out,
                       ReadAt read_at, int retries, double first_pause_seconds) {
  std::chrono::duration<double> pause(first_pause_seconds);
  int failures = 0;
  while (!out.empty()) {
    const ptrdiff_t got = read_at(out.data(), out.size(), offset);
    if (got > 0) {
      out = out.subspan(static_cast<size_t>(got));
      offset += static_cast<size_t>(got);
      continue;
    }
    const int reason = got < 0 ? errno : 0;
    if (reason == EINTR) continue;
    BEV_CHECK(reason != 0, Data, "{} ends at byte {}: it has become shorter since it was opened",
              path.string(), offset);
    BEV_CHECK(may_pass(reason) && failures < retries, Data, "cannot read {} from byte {} on{}: {}",
              path.string(), offset,
              failures > 0 ? format(", after {} attempts", failures + 1) : std::string(),
              std::strerror(reason));
    ++failures;
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

std::string read_text(const std::filesystem::path& path, size_t limit) {
  const auto [descriptor, size] = open_regular(path);
  if (size > limit) {
    ::close(descriptor);
    throw Error(ErrorKind::Data, format("{} has {} bytes; at most {} are read from such a file",
                                        path.string(), size, limit));
  }
  std::string text(size, '\0');
  size_t have = 0;
  while (have < size) {
    const ssize_t got = ::read(descriptor, text.data() + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  ::close(descriptor);
  BEV_CHECK(have == size, Data, "cannot read {}: {} of {} bytes came", path.string(), have, size);
  return text;
}

namespace {

void write_all(int descriptor, std::span<const std::byte> bytes,
               const std::filesystem::path& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    BEV_CHECK(put > 0, Data, "cannot write {}: {}", path.string(), std::strerror(errno));
    done += static_cast<size_t>(put);
  }
}

void read_all_at(int descriptor, size_t offset, std::span<std::byte> bytes,
                 const std::filesystem::path& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(descriptor, bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    BEV_CHECK(got > 0, Data, "cannot read back {}: {}", path.string(),
              got < 0 ? std::strerror(errno) : "it is too short");
    done += static_cast<size_t>(got);
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(path), temporary_(path.string() + format(".partial.{}", ::getpid())) {
  std::error_code ignored;
  BEV_CHECK(!std::filesystem::is_directory(path, ignored), Data, "cannot write {}: it is a folder",
            path_.string());
  descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  BEV_CHECK(descriptor_ >= 0, Data, "cannot write {}: {}", path_.string(), std::strerror(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  constexpr size_t kFlushBytes = size_t{16} << 20;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kFlushBytes);
    write_all(descriptor_, bytes.first(count), path_);
    bytes = bytes.subspan(count);
    written_ += count;
    if (written_ - flushing_ < kFlushBytes) continue;
    // A hint: where it cannot be followed, commit() does all.
    ::sync_file_range(descriptor_, static_cast<off_t>(flushing_),
                      static_cast<off_t>(written_ - flushing_), SYNC_FILE_RANGE_WRITE);
    flushing_ = written_;
  }
}

void AtomicFile::write_at(size_t offset, std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                 static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    BEV_CHECK(put > 0, Data, "cannot write {}: {}", path_.string(), std::strerror(errno));
    done += static_cast<size_t>(put);
  }
}

void AtomicFile::read_at(size_t offset, std::span<std::byte> bytes) const {
  read_all_at(descriptor_, offset, bytes, path_);
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

void AtomicFile::commit() {
  BEV_CHECK(::fsync(descriptor_) == 0, Data, "cannot flush {}: {}", path_.string(),
            std::strerror(errno));
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary_.c_str());
    throw Error(ErrorKind::Data,
                format("cannot write {}: {}", path_.string(), std::strerror(reason)));
  }
  // The rename itself must survive a power cut: flush the directory that holds the name.
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

SpoolFile::SpoolFile(const std::filesystem::path& folder)
    : folder_(folder.empty() ? std::filesystem::path(".") : folder) {
  std::string name = (folder_ / "bevatron.spool.XXXXXX").string();
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  BEV_CHECK(descriptor_ >= 0, Data, "cannot write a temporary file in {}: {}", folder_.string(),
            std::strerror(errno));
  ::unlink(name.c_str());
}

SpoolFile::~SpoolFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SpoolFile::SpoolFile(SpoolFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

void SpoolFile::write(std::span<const std::byte> bytes) {
  write_all(descriptor_, bytes, folder_);
  size_ += bytes.size();
}

void SpoolFile::read_at(size_t offset, std::span<std::byte> bytes) const {
  read_all_at(descriptor_, offset, bytes, folder_);
}

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

std::optional<UntrustedFile> find_file(int folder, const std::string& name) {
  struct stat info{};
  if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return UntrustedFile{.stamp = {.inode = info.st_ino,
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
  const fs::path parent = target_.parent_path();
  temporary_ = parent / format(".{}.partial.{}", target_.filename().string(), ::getpid());
  std::error_code error;
  fs::create_directories(parent, error);
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

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace bev
