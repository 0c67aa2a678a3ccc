// Files: read-only mapping, and writing so that a reader sees the old content or the new, never
// half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace bev {

// A whole file mapped for reading. Errors are ErrorKind::Data and name the path.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Advice for a file larger than memory: the range is read soon; the range leaves the memory of
  // this process until it is read again.
  void prefetch(size_t offset, size_t count) const;
  void release(size_t offset, size_t count) const;

 private:
  void advise(size_t offset, size_t count, int advice) const;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A file read piece by piece, by any number of threads: for file systems on which a mapping would
// end the program when the network fails. Reading is tried again after an error that may pass.
class PositionedFile {
 public:
  explicit PositionedFile(const std::filesystem::path& path);
  ~PositionedFile();
  PositionedFile(const PositionedFile&) = delete;
  PositionedFile& operator=(const PositionedFile&) = delete;

  size_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

  // Fills `out` with the bytes from `offset` on. Does not allocate unless it fails.
  void read(size_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  size_t size_;
};

// What PositionedFile::read does, for any function like pread(2) (bytes read, 0 at the end, -1 with
// errno). An error that may pass is met with up to `retries` more attempts, each after twice the
// pause of the one before. What remains is a Data error that names the path.
using ReadAt = FunctionRef<ptrdiff_t(std::byte* to, size_t count, size_t offset)>;
void read_with_retries(const std::filesystem::path& path, size_t offset, std::span<std::byte> out,
                       ReadAt read_at, int retries = 6, double first_pause_seconds = 0.25);

// The whole file as text. REQUIRES nothing of the content. Data error when it cannot be read or is
// larger than `limit` bytes.
std::string read_text(const std::filesystem::path& path, size_t limit = size_t{1} << 30);

// Writes to a temporary file beside `path`; commit() flushes it to disk and renames it over `path`.
// Without commit the destructor removes the temporary file and `path` keeps its old content. What
// is written goes on its way to the disk at once, so that commit() has little left to wait for.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Replaces what was written at an offset; reads what was written. REQUIRES: the range lies within
  // what was written.
  void write_at(size_t offset, std::span<const std::byte> bytes);
  void read_at(size_t offset, std::span<std::byte> bytes) const;
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  size_t written_ = 0, flushing_ = 0;  // bytes; of those, on their way to the disk
};

// A file without a name in a folder, for what does not fit memory; gone when this is.
class SpoolFile {
 public:
  explicit SpoolFile(const std::filesystem::path& folder);
  ~SpoolFile();
  SpoolFile(SpoolFile&& other) noexcept;
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;
  SpoolFile& operator=(SpoolFile&&) = delete;

  void write(std::span<const std::byte> bytes);
  // REQUIRES: the range lies within what was written.
  void read_at(size_t offset, std::span<std::byte> bytes) const;
  size_t size() const { return size_; }

 private:
  std::filesystem::path folder_;
  int descriptor_ = -1;
  size_t size_ = 0;
};

// A file whose name anybody may have given to anything: a link, a folder, a pipe, a gigabyte.

// What a file was when it was looked at: another value where it is changed or replaced.
struct FileStamp {
  uint64_t inode = 0;
  int64_t seconds = 0, nanoseconds = 0;  // of its last change
  int64_t bytes = 0;

  bool operator==(const FileStamp&) const = default;
};

struct UntrustedFile {
  FileStamp stamp{};
  uint32_t owner = 0;  // user id
  // What it is instead of a regular file, "a symbolic link"; empty: it is one.
  std::string_view other{};
};

// What has this name in an open folder; links are not followed. None: nothing, or nobody may see
// it. `folder` may be AT_FDCWD.
std::optional<UntrustedFile> find_file(int folder, const std::string& name);

// The first bytes of a regular file, at most so many. None: there is none. Never waits for a
// writer, follows no links.
std::optional<std::string> read_found(int folder, const std::string& name, size_t most);

// A directory that appears whole or not at all.

// Files are written into a temporary directory beside `target`; commit() puts it in the place of
// `target`, replacing what is there in one step. Without commit the destructor removes the
// temporary directory and `target` keeps its old content. Errors are Data errors that name
// `target`.
class AtomicDirectory {
 public:
  // Creates the directories above `target` where they are missing.
  explicit AtomicDirectory(const std::filesystem::path& target);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return temporary_; }  // where to write
  void commit();

 private:
  std::filesystem::path target_, temporary_;
};

// True if the name is one file of a folder: not empty, "." or "..", without '/' and zero bytes.
bool is_plain_file_name(const std::string& name);

}  // namespace bev
