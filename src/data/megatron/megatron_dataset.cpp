#include "data/megatron/megatron_dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/integer.h"
#include "data/megatron/numpy_random.h"

namespace bev {

int32_t padding_in_use(int32_t pad, int64_t eod) { return pad == eod ? -1 : pad; }

MegatronDataset::MegatronDataset(std::shared_ptr<const TokenFile> file,
                                 const MegatronSamplesSpec& spec)
    : file_(std::move(file)), spec_(spec), index_(build_megatron_index(*file_, spec.index)) {}

template <class F>
void MegatronDataset::for_each_piece(int64_t index, F f) const {
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

void MegatronDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
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
    batch.document_start[i] = batch.document_start[i - 1];
  }
}

std::vector<int64_t> MegatronDataset::piece_lengths(int64_t index) const {
  std::vector<int64_t> lengths;
  for_each_piece(index, [&](int64_t, int64_t, int64_t count) { lengths.push_back(count); });
  if (spec_.index.extra_token && --lengths.back() == 0) lengths.pop_back();
  int64_t sum = 0;
  for (const int64_t length : lengths) sum += length;
  if (sum < spec_.index.sequence) lengths.back() += spec_.index.sequence - sum;
  return lengths;
}

SampleSource MegatronDataset::source(int64_t index) const {
  SampleSource source{.file = file_->prefix().string()};
  if (index_.epochs == 1) source.epoch = index / index_.samples();
  for_each_piece(index, [&](int64_t sequence, int64_t from, int64_t count) {
    if (count > 0) source.pieces.push_back({sequence, from, count});
  });
  return source;
}

std::string MegatronDataset::describe(int64_t index) const {
  return describe_source(index, source(index), spec_.index.sequence);
}

namespace {

class Builder {
 public:
  Builder(const TokenFile& file, const MegatronIndexSpec& spec)
      : file_(file), spec_(spec), extra_(spec.extra_token ? 1 : 0), random_(spec.seed) {
    index_.tokens_per_epoch =
        file.stream_begin(spec.range.end) - file.stream_begin(spec.range.begin);
    count_epochs();
  }

  MegatronIndex build() {
    shuffle_documents();
    find_starts();
    shuffle_samples();
    return std::move(index_);
  }

 private:
  // Of a number of epochs, partial ones dropped.
  int64_t samples_in(int64_t epochs) const {
    return (epochs * index_.tokens_per_epoch - extra_) / spec_.sequence;
  }

  void count_epochs() {
    const int64_t tokens = index_.tokens_per_epoch, wanted = spec_.wanted.value_or(0);
    BEV_CHECK(tokens > 0, Data, "{}: sequences {} to {} have no tokens", file_.prefix().string(),
              spec_.range.begin, spec_.range.end);
    int64_t tokens_wanted = 0;
    BEV_CHECK(!multiply_overflows(wanted, spec_.sequence, tokens_wanted), Data,
              "{}: {} samples have more tokens than can be counted", file_.prefix().string(),
              wanted);
    index_.epochs = std::max<int64_t>(1, div_ceil(tokens_wanted + extra_, tokens));
    const double entries = static_cast<double>(index_.epochs) *
                           static_cast<double>(spec_.range.end - spec_.range.begin);
    const double bytes = 4 * entries + 24 * static_cast<double>(wanted);
    BEV_CHECK(bytes <= static_cast<double>(kMostIndexBytes), Data,
              "{}: Megatron-LM's order of {} samples would take {} of memory; data.order "
              "arithmetic takes none",
              file_.prefix().string(), wanted, as_bytes(bytes));
    if (index_.epochs == 1) return;
    // A last epoch of which little is wanted is shuffled apart, so that it is not mixed into the
    // whole ones.
    const int64_t from_last = wanted - samples_in(index_.epochs - 1);
    last_apart_ = from_last < static_cast<int64_t>(0.80 * static_cast<double>(samples_in(1)));
  }

  void shuffle_documents() {
    add_epochs(last_apart_ ? index_.epochs - 1 : index_.epochs);
    if (last_apart_) add_epochs(1);
  }

  void add_epochs(int64_t epochs) {
    std::vector<int32_t>& all = index_.documents;
    const auto first = static_cast<ptrdiff_t>(all.size());
    for (int64_t epoch = 0; epoch < epochs; ++epoch)
      for (int64_t i = spec_.range.begin; i < spec_.range.end; ++i)
        all.push_back(narrow<int32_t>(i));
    const std::span<int32_t> added(all.begin() + first, all.end());
    random_.shuffle(added);
  }

  int64_t count_samples() const {
    const int64_t whole = samples_in(index_.epochs);
    if (spec_.drop_partial) return whole;
    // Single precision, as there; where it rounds up beyond the tokens, Megatron fails.
    const int64_t tokens = index_.epochs * index_.tokens_per_epoch - extra_;
    const auto rounded = static_cast<int64_t>(
        std::ceil(static_cast<float>(tokens) / static_cast<float>(spec_.sequence)));
    return std::min(rounded, div_ceil(tokens, spec_.sequence));
  }

  void find_starts() {
    const auto documents = static_cast<int64_t>(index_.documents.size());
    const int64_t count = count_samples();
    index_.starts.reserve(static_cast<size_t>(count) + 1);
    index_.starts.push_back({});
    int64_t at = 0, offset = 0;
    for (int64_t sample = 0; sample < count; ++sample) {
      int64_t left = spec_.sequence + extra_;
      while (left > 0) {
        const int64_t length = file_.index().length(index_.documents[static_cast<size_t>(at)]);
        left -= length - offset;
        if (left <= 0) {
          offset = length + left - extra_;
        } else if (at + 1 < documents) {
          ++at;
          offset = 0;
        } else {
          // Only a last partial sample comes here; it ends with the last document.
          offset = length - extra_;
          break;
        }
      }
      index_.starts.push_back({at, narrow<int32_t>(offset)});
    }
  }

  void shuffle_samples() {
    const auto count = static_cast<int64_t>(index_.starts.size()) - 1;
    const int64_t first = last_apart_ ? samples_in(index_.epochs - 1) : count;
    index_.shuffle.resize(static_cast<size_t>(count));
    std::iota(index_.shuffle.begin(), index_.shuffle.end(), 0);
    const std::span<int64_t> all(index_.shuffle);
    auto before = all.first(static_cast<size_t>(first));
    auto behind = all.subspan(static_cast<size_t>(first));
    random_.shuffle(before);
    random_.shuffle(behind);
  }

  const TokenFile& file_;
  MegatronIndexSpec spec_;
  int64_t extra_;
  NumpyRandom random_;
  MegatronIndex index_;
  bool last_apart_ = false;
};

}  // namespace

MegatronIndex build_megatron_index(const TokenFile& file, const MegatronIndexSpec& spec) {
  return Builder(file, spec).build();
}

}  // namespace bev
