#include "verify/uneven_dataset.h"

namespace bev {

void UnevenSamples::read(int64_t index, HostBatch& batch, int64_t at) const {
  tokens_.read(index, batch, at);
  for (int64_t i = 0; i < batch.length; ++i) {
    const bool counts = index % 5 != 3 && (i * 7 + index * index) % 4 >= index % 3;
    batch.weight[static_cast<size_t>(at * batch.length + i)] = counts ? 1.0f : 0.0f;
  }
  const bool is_packed = !batch.first_visible.empty();
  if (is_packed) batch.separate(at, batch.length / (2 + index % 3), batch.length);
}

}  // namespace bev
