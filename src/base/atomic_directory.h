// A directory that appears whole or not at all.
#pragma once

#include <filesystem>

namespace bev {

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

}  // namespace bev
