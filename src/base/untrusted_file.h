// A file whose name anybody may have given to anything: a link, a folder, a pipe, a gigabyte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bev {

// What a file was when it was looked at: another value where it is changed or replaced.
struct FileStamp {
  uint64_t inode = 0;
  int64_t seconds = 0, nanoseconds = 0;  // of its last change
  int64_t bytes = 0;

  bool operator==(const FileStamp&) const = default;
};

struct FoundFile {
  FileStamp stamp{};
  uint32_t owner = 0;  // user id
  // What it is instead of a regular file, "a symbolic link"; empty: it is one.
  std::string_view other{};
};

// What has this name in an open folder; links are not followed. None: nothing, or nobody may see
// it. `folder` may be AT_FDCWD.
std::optional<FoundFile> find_file(int folder, const std::string& name);

// The first bytes of a regular file, at most so many. None: there is none. Never waits for a
// writer, follows no links.
std::optional<std::string> read_found(int folder, const std::string& name, size_t most);

}  // namespace bev
