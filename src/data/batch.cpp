#include "data/batch.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"

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
  document_start.resize(packed ? count : 0);
}

void HostBatch::start_sequence(int64_t at, int64_t sample) {
  const int64_t first = at * length;
  std::iota(positions.begin() + first, positions.begin() + first + length, 0);
  std::fill_n(weight.begin() + first, length, 1.0f);
  number_rows(at, sample);
  if (!document_start.empty()) std::fill_n(document_start.begin() + first, length, 0);
}

void HostBatch::number_rows(int64_t at, int64_t sample) {
  const auto first = rows.begin() + at * length;
  std::iota(first, first + length, sample * length);
}

void HostBatch::separate(int64_t at, int64_t begin, int64_t end) {
  const int64_t first = at * length;
  std::iota(positions.begin() + first + begin, positions.begin() + first + end, 0);
  std::fill(document_start.begin() + first + begin, document_start.begin() + first + end,
            static_cast<int32_t>(begin));
}

std::string describe_source(int64_t index, const SampleSource& source, int64_t tokens) {
  const SampleSource::Piece& first = source.pieces.front();
  return format("sample {}: {} tokens of {} from token {} of sequence {} on", index, tokens,
                source.file, first.offset, first.sequence);
}

void apply_document_ends(const EodRules& ends, HostBatch& batch, int64_t at) {
  int32_t document = 0;  // the position where the current one begins
  for (int64_t i = 0; i < batch.length; ++i) {
    const auto slot = static_cast<size_t>(at * batch.length + i);
    const auto position = static_cast<int32_t>(i);
    if (ends.reset_positions) batch.positions[slot] = position - document;
    if (ends.reset_attention) batch.document_start[slot] = document;
    if (batch.tokens[slot] != ends.eod) continue;
    if (ends.mask_eod) batch.weight[slot] = 0.0f;
    document = position + 1;
  }
}

}  // namespace bev
