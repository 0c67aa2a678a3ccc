#include "data/batch.h"

namespace bev {

double HostBatch::valid_tokens() const {
  double sum = 0;
  for (const float w : weight) sum += static_cast<double>(w);
  return sum;
}

void HostBatch::resize(int64_t sequence_count, int64_t sequence_length, bool packed) {
  sequences = sequence_count;
  length = sequence_length;
  const auto count = static_cast<size_t>(sequences * length);
  tokens.resize(count);
  targets.resize(count);
  positions.resize(count);
  weight.resize(count);
  rows.resize(count);
  first_visible.resize(packed ? count : 0);
}

}  // namespace bev
