// Uploads batches while the device computes: a batch is copied to pinned memory at once, and from
// there on the copy stream while the previous micro-batch is computed.
#pragma once

#include <vector>

#include "data/batch.h"
#include "device/memory.h"

namespace bev {

class BatchUploader {
 public:
  // `bytes`: of one micro-batch on the device, the peak() of a dry run. `slots`: micro-batches
  // in use at a time. Each slot has memory for two batches: one in use, one in flight.
  BatchUploader(Device& device, size_t bytes, size_t slots);

  // The batch on the device, valid until the next upload into this slot. Work that is issued later
  // on the compute stream sees it; the host's copy may change when this returns. REQUIRES: all
  // work that reads the previous batch of the slot has been issued.
  MicroBatch upload(const HostBatch& batch, size_t slot);

  static size_t copies(int slots) { return 2 * static_cast<size_t>(slots); }
  size_t peak() const;

 private:
  struct Entry {
    Arena arena;
    PinnedBuffer pinned;
    Event copied{};
  };

  Device& device_;
  std::vector<Entry> entries_;  // two for each slot
  std::vector<bool> second_;    // by slot: the second entry is next
  Event before_{};              // on the compute stream, when the previous upload was issued
};

}  // namespace bev
