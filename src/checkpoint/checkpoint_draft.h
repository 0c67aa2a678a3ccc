// A checkpoint while it is written: a hidden folder (.iter_0000100.writing) next to its place,
// which it takes by one rename. Until then no reader finds a checkpoint there.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/checkpoint_folder.h"

namespace bev {

class CheckpointDraft {
 public:
  // Names only; touches nothing. A negative iteration means release.
  CheckpointDraft(const CheckpointFolder& folder, int64_t iteration);

  const std::filesystem::path& path() const { return path_; }
  // Makes the folder, empty; Data error.
  void start() const;
  void drop() const noexcept;
  // The draft takes its place, in which there may be an older checkpoint, and
  // latest_checkpointed_iteration.txt names it; returns why it does not, or nothing. Data error:
  // nothing was changed. REQUIRES: its files are flushed.
  std::string commit() const;

 private:
  // The folder in the place gives way to the draft and is removed. False: errno says why not.
  bool replace() const;

  CheckpointFolder folder_;
  int64_t iteration_;
  std::filesystem::path path_, place_;
};

}  // namespace bev
