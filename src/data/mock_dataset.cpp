#include "data/mock_dataset.h"

#include "base/format.h"
#include "base/philox.h"

namespace bev {

void MockDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  const PhiloxBlock draw = philox(mix_key(seed_, "mock samples"), 0, static_cast<uint64_t>(index));
  const int64_t start = draw[0] % vocab_;
  const int64_t step = 1 + draw[1] % 4;
  for (int64_t position = 0; position < batch.length; ++position) {
    const auto slot = static_cast<size_t>(at * batch.length + position);
    batch.tokens[slot] = static_cast<int32_t>((start + step * position) % vocab_);
    batch.targets[slot] = static_cast<int32_t>((start + step * (position + 1)) % vocab_);
    batch.positions[slot] = static_cast<int32_t>(position);
    batch.weight[slot] = 1.0f;
    batch.rows[slot] = index * batch.length + position;
    if (!batch.document_start.empty()) batch.document_start[slot] = 0;
  }
}

std::string MockDataset::describe(int64_t index) const {
  return format("made-up sample {}", index);
}

}  // namespace bev
