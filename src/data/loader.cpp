#include "data/loader.h"

namespace bev {

Loader::Loader(std::unique_ptr<Samples> samples, int64_t micros, int64_t sequences, int64_t length)
    : samples_(std::move(samples)), batches_(static_cast<size_t>(micros)) {
  for (HostBatch& batch : batches_) batch.resize(sequences, length, false);
}

std::span<const HostBatch> Loader::next() {
  for (HostBatch& batch : batches_) {
    for (int64_t at = 0; at < batch.sequences; ++at) samples_->read(consumed_++, batch, at);
  }
  return batches_;
}

}  // namespace bev
