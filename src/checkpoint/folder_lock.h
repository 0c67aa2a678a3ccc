// One run at a time writes into a folder of checkpoints: a job that is queued again while the old
// one still lives would remove what that one is writing.
#pragma once

#include <filesystem>

namespace bev {

class FolderLock {
 public:
  // Makes the folder where it is missing. Data error where another process still holds it after so
  // many seconds: one that was killed may need some to be gone. A file system without locks grants
  // it to everybody.
  explicit FolderLock(const std::filesystem::path& folder, double patience_seconds = 5);
  // Also the end of the process gives it back, whatever ends it.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace bev
