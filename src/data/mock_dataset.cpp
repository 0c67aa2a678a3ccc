#include "data/mock_dataset.h"

#include <algorithm>

#include "base/format.h"
#include "base/philox.h"

namespace bev {

void MockDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  if (!batch.marked.empty()) return read_masked(index, batch, at);
  if (batch.text_count() > 1) return read_pair(index, batch, at);
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

// Two segments that count through the vocabulary, the second from where the first ends or, with
// label 1, from elsewhere; then padding.
void MockDataset::read_masked(int64_t index, HostBatch& batch, int64_t at) const {
  const PhiloxBlock draw = philox(mix_key(seed_, "mock samples"), 0, static_cast<uint64_t>(index));
  const int64_t length = batch.length, each = batch.targets_each();
  const int64_t used = length - draw[0] % (length / 4 + 1), middle = (used + 1) / 2;
  const int64_t step = 1 + draw[1] % 4, jump = draw[2] % 2 * (1 + vocab_ / 3);
  const auto mask = static_cast<int32_t>(vocab_ - 1);
  const auto token = [&](int64_t position) {
    const int64_t shift = position < middle ? 0 : jump;
    return static_cast<int32_t>((draw[3] + step * position + shift) % vocab_);
  };
  for (int64_t position = 0; position < length; ++position) {
    const auto slot = static_cast<size_t>(at * length + position);
    const bool is_padding = position >= used;
    batch.tokens[slot] = is_padding ? 0 : token(position);
    batch.positions[slot] = static_cast<int32_t>(position);
    batch.rows[slot] = index * length + position;
    batch.types[slot] = !is_padding && position >= middle ? 1 : 0;
  }
  // Some entries stay unused.
  const int64_t predicted = std::max<int64_t>(1, std::min(each, used) - draw[1] % 2);
  for (int64_t i = 0; i < each; ++i) {
    const auto slot = static_cast<size_t>(at * each + i);
    const bool counts = i < predicted;
    const int64_t position = counts ? i * used / predicted : 0;
    batch.marked[slot] = static_cast<int32_t>(at * length + position);
    batch.targets[slot] = counts ? token(position) : 0;
    batch.weight[slot] = counts ? 1.0f : 0.0f;
    if (counts && i % 5 != 4) batch.tokens[static_cast<size_t>(at * length + position)] = mask;
  }
  const auto sequence = static_cast<size_t>(at);
  batch.lengths[sequence] = static_cast<int32_t>(used);
  batch.pooled[sequence] = static_cast<int32_t>(at * length);
  batch.label[sequence] = draw[2] % 2 == 0 ? 0 : 1;
  batch.label_weight[sequence] = 1;
}

// The first text counts through the vocabulary, the second goes on from its end; then padding.
void MockDataset::read_pair(int64_t index, HostBatch& batch, int64_t at) const {
  const PhiloxBlock draw = philox(mix_key(seed_, "mock samples"), 0, static_cast<uint64_t>(index));
  const int64_t step = 1 + draw[1] % 4;
  int64_t next = draw[2] % vocab_;
  for (size_t i = 0; i < batch.text_count(); ++i) {
    HostText& text = batch.text(i);
    const int64_t used = text.length - draw[i == 0 ? 0 : 3] % (text.length / 4 + 1);
    for (int64_t position = 0; position < text.length; ++position) {
      const auto slot = static_cast<size_t>(at * text.length + position);
      const bool is_padding = position >= used;
      text.tokens[slot] = static_cast<int32_t>(is_padding ? 0 : (next + step * position) % vocab_);
      text.positions[slot] = static_cast<int32_t>(position);
      if (text.targets.empty()) continue;
      text.targets[slot] =
          static_cast<int32_t>(is_padding ? 0 : (next + step * (position + 1)) % vocab_);
      text.weight[slot] = is_padding ? 0.0f : 1.0f;
    }
    const auto sequence = static_cast<size_t>(at);
    text.lengths[sequence] = static_cast<int32_t>(used);
    if (!text.types.empty()) std::fill_n(text.types.begin() + at * text.length, text.length, 0);
    if (!text.pooled.empty())
      text.pooled[sequence] = static_cast<int32_t>(text.first_row + at * text.length);
    if (!text.label_weight.empty()) text.label_weight[sequence] = 1;
    next = (next + step * used) % vocab_;
  }
  batch.number_rows(at, index);
}

std::string MockDataset::describe(int64_t index) const {
  return format("made-up sample {}", index);
}

}  // namespace bev
