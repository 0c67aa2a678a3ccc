// A copy, in host memory, of what a rank writes into a checkpoint: the training goes on while the
// copy is written. Its memory is taken once, before the training starts.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "checkpoint/local_pieces.h"
#include "device/buffer.h"
#include "device/pinned_buffer.h"

namespace bev {

class Snapshot {
 public:
  // The device and what the pieces point to must outlive this. On a device whose memory is the
  // host's the copy counts as the device's ("checkpoint copy"), else it is pinned.
  Snapshot(Device& device, std::span<const HeldPiece> pieces);

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

}  // namespace bev
