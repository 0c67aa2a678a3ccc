// The folder that holds the checkpoints of a run: iter_0000100, iter_0000200, ..., or release for
// weights that were imported. checkpoint_draft.h writes a checkpoint into it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bev {

// A checkpoint among others.
struct CheckpointPlace {
  std::filesystem::path path;
  int64_t iteration = 0;  // of release: 0

  bool is_release() const { return path.filename() == "release"; }
};

class CheckpointFolder {
 public:
  // Names only; touches nothing.
  explicit CheckpointFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  // iter_0000100; a negative number means release.
  std::filesystem::path place_of(int64_t iteration) const;

  // What is there, whole or not, oldest first, release before all.
  std::vector<CheckpointPlace> list() const;

  // A hidden folder next to the place of a checkpoint: a draft, what is being removed, what gives
  // way to a draft.
  enum class Hidden : uint8_t { Draft, Removed, Replaced };
  std::filesystem::path hidden_place(int64_t iteration, Hidden kind) const;

  // What Megatron-LM's scripts look at: a hint, never trusted.
  std::filesystem::path tracker() const { return root_ / "latest_checkpointed_iteration.txt"; }

  // Disappears from list() at once. Data error when it cannot be removed.
  void remove(int64_t iteration) const;
  // Removes what killed runs left half written or half removed; one that had stepped aside for a
  // draft that never took its place returns. REQUIRES: nobody writes here now.
  void clear_leftovers() const;

 private:
  std::filesystem::path root_;
};

// The checkpoints that a path of the user means, newest first: a folder of checkpoints, the folder
// of a run (its checkpoints/), or one checkpoint. None: there are none, or no such folder.
std::vector<CheckpointPlace> find_checkpoints(const std::filesystem::path& path);

// Whether the folder is one checkpoint, good or not.
bool is_checkpoint(const std::filesystem::path& path);

// The path, or the nearest one above it that exists: where missing folders would be made.
std::filesystem::path existing_folder(const std::filesystem::path& path);

// Bytes that the disk under existing_folder() has free for this user; none where nobody knows.
std::optional<double> free_bytes(const std::filesystem::path& path);

// Data errors that begin with `name`, found before a run writes to `path`: its folder cannot be
// made or written; the disk has fewer free bytes than "a checkpoint takes".
void require_writable(const std::string& name, const std::filesystem::path& path);
void require_disk_space(const std::string& name, const std::filesystem::path& path, double bytes,
                        const char* what_takes);

// One run at a time writes into a folder of checkpoints: a job that is queued again while the old
// one still lives would remove what that one is writing.

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
