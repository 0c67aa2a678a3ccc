// Writes checkpoints while the training goes on. All ranks together: each writes its own pieces
// into a folder that all of them see, and the first makes the whole visible when all have written.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_draft.h"
#include "checkpoint/local_pieces.h"
#include "comm/communicator.h"
#include "device/memory.h"

namespace bev {

// A copy, in host memory, of what a rank writes into a checkpoint: the training goes on while the
// copy is written. Its memory is taken once, before the training starts.

class HostSnapshot {
 public:
  // The device and what the pieces point to must outlive this. On a device whose memory is the
  // host's the copy counts as the device's ("checkpoint copy"), else it is pinned.
  HostSnapshot(Device& device, std::span<const LocalPiece> pieces);

  size_t bytes() const { return bytes_; }

  // Copies everything; complete on return. Waits for what the device was given before.
  void take();
  // Of a piece, as of the last take().
  std::span<const std::byte> bytes_of_piece(size_t index) const;

 private:
  // Pieces that lie beside each other on the device.
  struct Run {
    const std::byte* from;
    size_t at, bytes;  // in the copy
  };
  std::byte* memory() const { return pinned_.data() != nullptr ? pinned_.data() : buffer_->data(); }

  Device& device_;
  std::vector<size_t> begins_, sizes_;  // of each piece, in the copy
  std::vector<Run> runs_;
  size_t bytes_ = 0;
  std::optional<Buffer> buffer_;
  PinnedBuffer pinned_;
};

// How one save went.
struct SaveReport {
  int64_t iteration = 0;
  std::string failure{};     // empty: the checkpoint is there; else why not, in the user's words
  bool failed_here = false;  // on this rank: the failure has the words of what went wrong
  double pause = 0;          // seconds in which the training stood still
  double seconds = 0;        // until it was there, or given up
  double bytes = 0;          // of the whole checkpoint; known to the first rank
  std::string note{};        // what tidying could not do
};

class CheckpointSaver {
 public:
  struct Options {
    bool asynchronous = true;
    bool with_optimizer = true;
    double bytes = 0;  // of a whole checkpoint, as planned: the disk must have them free
    // Files besides the tensors, name and content; the first rank's.
    std::vector<std::pair<std::string, std::string>> extra_files{};
    // Of every rank, as each save ends, from the thread that calls this.
    std::function<void(const SaveReport&)> ended{};
    // Of the first rank, after a checkpoint has become visible, from another thread: removes what
    // is too old. Returns what went wrong, or nothing; must not throw.
    std::function<std::string()> tidy{};
  };

  // All must outlive this.
  CheckpointSaver(CheckpointFolder folder, Communicator& world, ParamStore& params,
                  const Optimizer& optimizer, Options options);
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // All ranks together, as all others here. Waits for the save before, copies and returns.
  // `manifest` lacks its files. REQUIRES: no step is on its way.
  void save(Manifest manifest);
  // Between steps: ends what all ranks have written. Costs nothing where nothing is under way.
  void poll();
  // Waits for what is under way. Whether the last save succeeded; true when there was none.
  bool finish();

  const CheckpointFolder& folder() const { return folder_; }
  // In host memory, of this rank; 0 where the training waits instead.
  size_t copy_bytes() const { return snapshot_ ? snapshot_->bytes() : 0; }

 private:
  enum class Phase : uint8_t { Idle, Writing, Committing };
  // How the work of one rank stands; over all ranks the largest decides.
  enum class Standing : uint8_t { Done, Failed, Busy };

  // Pieces of one kind, which go into one file.
  struct Group {
    const char* kind;             // "weights", "optimizer"
    size_t first = 0, count = 0;  // among pieces_
  };

  bool is_first() const { return world_.rank() == 0; }
  void add_group(const char* kind, std::vector<LocalPiece> pieces);
  CheckpointDraft draft() const { return {folder_, manifest_.iteration}; }
  std::filesystem::path part_file(int rank) const;
  void start_draft() const;
  void write_part();
  CheckpointFile write_group(const Group& group);
  void commit();
  // Starts work of this rank; `here`: on this thread and at once.
  void start(std::function<void()> work, bool here);
  // Whether `mine` or that of another rank failed or goes on. `failure` is then set.
  Standing agree(Standing mine, std::string& failure);
  Standing standing();
  void end(std::string failure);

  CheckpointFolder folder_;
  Communicator& world_;
  Device& device_;
  Options options_;
  std::vector<LocalPiece> pieces_;
  std::vector<Group> groups_;
  std::optional<HostSnapshot> snapshot_;

  Phase phase_ = Phase::Idle;
  Manifest manifest_;  // of the save under way; the rest is about it too
  SaveReport report_;
  double begun_ = 0;
  std::future<void> work_;
  std::optional<std::string> outcome_;  // of the work: absent while it goes on; empty: it is done
  bool last_succeeded_ = true;
};

}  // namespace bev
