#include "data/token_samples.h"

#include "base/check.h"
#include "data/sample_order.h"

namespace bev {

TokenSamples::TokenSamples(std::shared_ptr<const TokenFile> file, SequenceRange range,
                           const TokenSamplesSpec& spec)
    : file_(std::move(file)),
      spec_(spec),
      begin_(file_->stream_begin(range.begin)),
      end_(file_->stream_begin(range.end)),
      windows_((end_ - begin_ - 1) / spec.sequence) {
  BEV_CHECK(windows_ >= 1, Data,
            "{}: sequences {} to {} have {} tokens, fewer than one sample of {} tokens and the one "
            "that follows it",
            file_->prefix().string(), range.begin, range.end, end_ - begin_, spec.sequence);
}

int64_t TokenSamples::window_begin(int64_t index) const {
  const int64_t window =
      spec_.shuffled ? ordered_sample(index, windows_, spec_.seed).window : index % windows_;
  return begin_ + window * spec_.sequence;
}

void TokenSamples::read(int64_t index, HostBatch& batch, int64_t at) const {
  const int64_t place = window_begin(index);
  const auto first = static_cast<size_t>(at * batch.length);
  const auto count = static_cast<size_t>(batch.length);
  const std::span<int32_t> tokens(batch.tokens.data() + first, count);
  file_->read(place, tokens, spec_.vocab);
  std::copy(tokens.begin() + 1, tokens.end(), batch.targets.data() + first);
  file_->read(place + batch.length, {batch.targets.data() + first + count - 1, 1}, spec_.vocab);
  for (size_t i = 0; i < count; ++i) {
    batch.positions[first + i] = static_cast<int32_t>(i);
    batch.weight[first + i] = 1.0f;
    batch.rows[first + i] = index * batch.length + static_cast<int64_t>(i);
  }
  if (!batch.first_visible.empty())
    std::fill_n(batch.first_visible.begin() + at * batch.length, count, 0);
  if (spec_.mask_eod || spec_.reset_positions || spec_.reset_attention)
    apply_document_ends(batch, first);
}

void TokenSamples::apply_document_ends(HostBatch& batch, size_t first) const {
  int32_t document = 0;  // the position where the current one begins
  for (int64_t i = 0; i < batch.length; ++i) {
    const size_t slot = first + static_cast<size_t>(i);
    const auto position = static_cast<int32_t>(i);
    if (spec_.reset_positions) batch.positions[slot] = position - document;
    if (spec_.reset_attention) batch.first_visible[slot] = document;
    if (batch.tokens[slot] != spec_.eod) continue;
    if (spec_.mask_eod) batch.weight[slot] = 0.0f;
    document = position + 1;
  }
}

std::string TokenSamples::describe(int64_t index) const {
  const int64_t place = window_begin(index);
  const int64_t sequence = file_->sequence_at(place);
  return format("sample {}: {} tokens of {} from token {} of sequence {} on", index, spec_.sequence,
                file_->prefix().string(), place - file_->stream_begin(sequence), sequence);
}

}  // namespace bev
