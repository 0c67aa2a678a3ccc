#include "data/megatron/megatron_dataset.h"

#include <algorithm>

namespace bev {

int32_t padding_in_use(int32_t pad, int64_t eod) { return pad == eod ? -1 : pad; }

MegatronSamples::MegatronSamples(std::shared_ptr<const TokenFile> file,
                                 const MegatronSamplesSpec& spec)
    : file_(std::move(file)), spec_(spec), index_(build_megatron_index(*file_, spec.index)) {}

template <class F>
void MegatronSamples::for_each_piece(int64_t index, F f) const {
  const auto sample =
      static_cast<size_t>(index_.shuffle[static_cast<size_t>(index % index_.samples())]);
  const MegatronIndex::Start begin = index_.starts[sample], end = index_.starts[sample + 1];
  const int64_t extra = spec_.index.extra_token ? 1 : 0;
  for (int64_t at = begin.document; at <= end.document; ++at) {
    const int64_t sequence = index_.documents[static_cast<size_t>(at)];
    const int64_t from = at == begin.document ? begin.offset : 0;
    const int64_t to = at == end.document ? end.offset + extra : file_->index().length(sequence);
    f(sequence, from, to - from);
  }
}

void MegatronSamples::read(int64_t index, HostBatch& batch, int64_t at) const {
  const auto first = static_cast<size_t>(at * batch.length);
  const std::span<int32_t> tokens(batch.tokens.data() + first, static_cast<size_t>(batch.length));
  const std::span<int32_t> targets(batch.targets.data() + first, tokens.size());
  targets.back() = spec_.pad;  // unless there is one token more
  size_t filled = 0;
  for_each_piece(index, [&](int64_t sequence, int64_t from, int64_t count) {
    const int64_t place = file_->stream_begin(sequence) + from;
    const size_t fits = std::min(tokens.size() - filled, static_cast<size_t>(count));
    file_->read(place, tokens.subspan(filled, fits), spec_.vocab);
    filled += fits;
    if (fits < static_cast<size_t>(count))
      file_->read(place + static_cast<int64_t>(fits), targets.last(1), spec_.vocab);
  });
  std::fill(tokens.begin() + static_cast<ptrdiff_t>(filled), tokens.end(), spec_.pad);
  std::copy(tokens.begin() + 1, tokens.end(), targets.begin());
  batch.start_sequence(at, index);
  if (spec_.ends.matter()) apply_document_ends(spec_.ends, batch, at);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (targets[i] == spec_.pad) {
      batch.weight[first + i] = 0.0f;
      targets[i] = 0;
    }
    if (tokens[i] == spec_.pad) tokens[i] = 0;
  }
  if (!spec_.separate_sequences) return;
  int64_t begin = 0;
  for_each_piece(index, [&](int64_t, int64_t, int64_t count) {
    const int64_t end = std::min(batch.length, begin + count);
    batch.separate(at, begin, end);
    begin = end;
  });
  // What fills the sample up belongs to its last piece.
  for (size_t i = first + static_cast<size_t>(begin); i < first + tokens.size() && begin > 0; ++i) {
    batch.positions[i] = batch.positions[i - 1] + 1;
    batch.first_visible[i] = batch.first_visible[i - 1];
  }
}

std::vector<int64_t> MegatronSamples::piece_lengths(int64_t index) const {
  std::vector<int64_t> lengths;
  for_each_piece(index, [&](int64_t, int64_t, int64_t count) { lengths.push_back(count); });
  if (spec_.index.extra_token && --lengths.back() == 0) lengths.pop_back();
  int64_t sum = 0;
  for (const int64_t length : lengths) sum += length;
  if (sum < spec_.index.sequence) lengths.back() += spec_.index.sequence - sum;
  return lengths;
}

SampleSource MegatronSamples::source(int64_t index) const {
  SampleSource source{.file = file_->prefix().string()};
  if (index_.epochs == 1) source.epoch = index / index_.samples();
  for_each_piece(index, [&](int64_t sequence, int64_t from, int64_t count) {
    if (count > 0) source.pieces.push_back({sequence, from, count});
  });
  return source;
}

std::string MegatronSamples::describe(int64_t index) const {
  return describe_source(index, source(index), spec_.index.sequence);
}

}  // namespace bev
