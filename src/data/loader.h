// The micro-batches of one step after the other. Its position is one integer.
#pragma once

#include <memory>
#include <span>

#include "data/batch.h"

namespace bev {

class Loader {
 public:
  // Each step takes micros * sequences samples in order.
  Loader(std::unique_ptr<Samples> samples, int64_t micros, int64_t sequences, int64_t length);

  // Valid until the next call. Does not allocate.
  std::span<const HostBatch> next();

  int64_t samples_consumed() const { return consumed_; }

 private:
  std::unique_ptr<Samples> samples_;
  std::vector<HostBatch> batches_;
  int64_t consumed_ = 0;
};

}  // namespace bev
