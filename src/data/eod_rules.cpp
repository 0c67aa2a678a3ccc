#include "data/eod_rules.h"

namespace bev {

void apply_document_ends(const DocumentEnds& ends, HostBatch& batch, int64_t at) {
  int32_t document = 0;  // the position where the current one begins
  for (int64_t i = 0; i < batch.length; ++i) {
    const auto slot = static_cast<size_t>(at * batch.length + i);
    const auto position = static_cast<int32_t>(i);
    if (ends.reset_positions) batch.positions[slot] = position - document;
    if (ends.reset_attention) batch.first_visible[slot] = document;
    if (batch.tokens[slot] != ends.eod) continue;
    if (ends.mask_eod) batch.weight[slot] = 0.0f;
    document = position + 1;
  }
}

}  // namespace bev
