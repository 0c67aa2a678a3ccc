// Tokens to the device, beside the work: host memory is copied to pinned memory at once, from there
// on the copy stream while the micro-batch before is computed.
#pragma once

#include <vector>

#include "data/batch.h"
#include "device/memory.h"

namespace bev {

class BatchUploader {
 public:
  // `bytes`: of one micro-batch on the device, as peak() of a dry run says. `slots`: micro-batches
  // in use at a time; for each there is memory for the next one, which is on its way meanwhile.
  BatchUploader(Device& device, size_t bytes, size_t slots);

  // The batch on the device, valid until the next load into this slot. What is issued on the
  // compute stream later sees it; the host's copy may change when this returns. REQUIRES:
  // everything that reads what the slot held has been issued.
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
  std::vector<bool> second_;    // of each slot: which of its entries is next
  Event before_{};              // on the compute stream, when the load before was issued
};

}  // namespace bev
