#include "data/token_dataset.h"

#include <algorithm>

#include "base/check.h"
#include "data/sample_order.h"

namespace bev {

TokenDataset::TokenDataset(std::shared_ptr<const TokenFile> file, SequenceRange range,
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

int64_t TokenDataset::window_begin(int64_t index) const {
  const int64_t window =
      spec_.shuffled ? ordered_sample(index, windows_, spec_.seed).window : index % windows_;
  return begin_ + window * spec_.sequence;
}

void TokenDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  const int64_t place = window_begin(index);
  const auto first = static_cast<size_t>(at * batch.length);
  const auto count = static_cast<size_t>(batch.length);
  const std::span<int32_t> tokens(batch.tokens.data() + first, count);
  file_->read(place, tokens, spec_.vocab);
  std::copy(tokens.begin() + 1, tokens.end(), batch.targets.data() + first);
  file_->read(place + batch.length, {batch.targets.data() + first + count - 1, 1}, spec_.vocab);
  batch.start_sequence(at, index);
  if (spec_.ends.matter()) apply_document_ends(spec_.ends, batch, at);
  if (spec_.separate_sequences) separate_sequences(place, batch, at);
}

void TokenDataset::separate_sequences(int64_t place, HostBatch& batch, int64_t at) const {
  const int64_t end = place + batch.length;
  for (int64_t sequence = file_->sequence_at(place), begin = place; begin < end; ++sequence) {
    const int64_t next = std::min(end, file_->stream_begin(sequence + 1));
    batch.separate(at, begin - place, next - place);
    begin = next;
  }
}

SampleSource TokenDataset::source(int64_t index) const {
  SampleSource source{.file = file_->prefix().string(), .epoch = index / windows_};
  const int64_t begin = window_begin(index), end = begin + spec_.sequence + 1;
  int64_t sequence = file_->sequence_at(begin);
  for (int64_t place = begin; place < end; ++sequence) {
    const int64_t next = std::min(end, file_->stream_begin(sequence + 1));
    if (next == place) continue;
    source.pieces.push_back({.sequence = sequence,
                             .offset = place - file_->stream_begin(sequence),
                             .tokens = next - place});
    place = next;
  }
  return source;
}

std::string TokenDataset::describe(int64_t index) const {
  return describe_source(index, source(index), spec_.sequence);
}

}  // namespace bev
