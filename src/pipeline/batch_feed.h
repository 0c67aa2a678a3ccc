// Tokens to the device, beside the work: host memory is copied to pinned memory at once, from there
// on the copy stream while the micro-batch before is computed.
#pragma once

#include <vector>

#include "data/batch.h"
#include "device/arena.h"
#include "device/pinned_buffer.h"

namespace bev {

class BatchFeed {
 public:
  // `bytes`: of one micro-batch on the device, as peak() of a dry run says. `slots`: micro-batches
  // in use at a time; one more is on its way.
  BatchFeed(Device& device, size_t bytes, size_t slots);

  // The batch on the device, valid until `slots` further loads. What is issued on the compute
  // stream later sees it; the host's copy may change when this returns.
  // REQUIRES: everything that reads the load `slots` loads ago has been issued.
  MicroBatch load(const HostBatch& batch);

  size_t copies() const { return entries_.size(); }
  size_t peak() const;

 private:
  struct Entry {
    Arena arena;
    PinnedBuffer pinned;
    Event copied{};
  };
  template <class T>
  ConstTensor put(Entry& entry, const std::vector<T>& host, const char* name);

  Device& device_;
  std::vector<Entry> entries_;
  size_t next_ = 0;
  Event before_{};  // on the compute stream, when the load before was issued
};

}  // namespace bev
