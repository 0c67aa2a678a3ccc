#include "data/bert_dataset.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/philox.h"
#include "data/megatron/megatron_dataset.h"
#include "data/megatron/numpy_random.h"
#include "data/sample_order.h"

namespace bev {

namespace {

// The numbers of one sample, as a function of a key and its index.
class SampleStream {
 public:
  SampleStream(uint64_t key, int64_t sample)
      : rounds_(philox_rounds(key)), sample_(static_cast<uint64_t>(sample)) {}

  uint32_t operator()() {
    if (used_ == block_.size()) {
      block_ = philox(rounds_, blocks_++, sample_);
      used_ = 0;
    }
    return block_[used_++];
  }

 private:
  PhiloxRounds<> rounds_;
  uint64_t sample_, blocks_ = 0;
  PhiloxBlock block_{};
  size_t used_ = block_.size();
};

using SampleRandom = NumpyDraws<SampleStream>;

int64_t special_tokens(const BertSamplesSpec& spec) { return spec.pairs ? 3 : 2; }

// Megatron-LM leaves room for two segments in a sample of one, too.
int64_t longest_run(const BertSamplesSpec& spec) { return spec.sequence - 3; }

int64_t least_sentences(const BertSamplesSpec& spec) { return spec.pairs ? 2 : 1; }

bool has_overlong(const TokenIndex& index, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    if (index.length(i) > kOverlongSentence) return true;
  return false;
}

// A document of a single sentence is cut, however long it is.
bool is_left_out(const TokenIndex& index, const BertSamplesSpec& spec, int64_t begin, int64_t end) {
  return spec.order == SampleOrder::Megatron && end - begin > 1 && has_overlong(index, begin, end);
}

std::vector<SentenceRun> arithmetic_runs(const TokenIndex& index, const BertSamplesSpec& spec) {
  std::vector<SentenceRun> runs;
  const uint64_t key = mix_key(spec.seed, "sample lengths");
  const int64_t longest = longest_run(spec);
  for (int64_t i = spec.documents.begin; i < spec.documents.end; ++i) {
    const int64_t sentences = index.document_begin(i + 1) - index.document_begin(i);
    if (sentences < least_sentences(spec)) continue;
    SampleRandom random{SampleStream(key, i)};
    const auto draw_target = [&] {
      return random.random() < spec.short_probability ? random.integer(2, longest + 1) : longest;
    };
    cut_document(index, i, least_sentences(spec), draw_target, runs);
  }
  return runs;
}

std::vector<SentenceRun> megatron_runs(const TokenIndex& index, const BertSamplesSpec& spec,
                                       std::optional<int64_t> wanted) {
  return map_sentences(index, {.first_document = spec.documents.begin,
                               .end_document = spec.documents.end,
                               .epochs = wanted ? int64_t{INT32_MAX} - 1 : 1,
                               .most_samples = wanted.value_or(INT64_MAX),
                               .longest = longest_run(spec),
                               .short_probability = spec.short_probability,
                               .seed = static_cast<uint32_t>(spec.seed),
                               .least_sentences = least_sentences(spec)});
}

// Of one sample; kept for the next one that this thread reads.
struct Workspace {
  WordMasker masker;
  std::vector<int32_t> tokens;
};

Workspace& workspace(int64_t sequence) {
  thread_local Workspace work;
  const auto tokens = static_cast<size_t>(sequence);
  work.masker.reserve(tokens);
  work.tokens.reserve(tokens);
  return work;
}

}  // namespace

SentenceCounts count_sentences(const TokenIndex& index, const BertSamplesSpec& spec) {
  SentenceCounts counts{.documents = spec.documents.end - spec.documents.begin};
  for (int64_t i = spec.documents.begin; i < spec.documents.end; ++i) {
    const int64_t begin = index.document_begin(i), end = index.document_begin(i + 1);
    if (begin == end) {
      ++counts.empty;
    } else if (end - begin < least_sentences(spec)) {
      ++counts.too_few;
    } else if (is_left_out(index, spec, begin, end)) {
      ++counts.overlong;
    } else {
      ++counts.usable;
      for (int64_t s = begin; s < end; ++s)
        counts.cut += index.length(s) > spec.sequence - special_tokens(spec) ? 1 : 0;
    }
  }
  return counts;
}

BertDataset::BertDataset(std::shared_ptr<const TokenFile> file, BertSamplesSpec spec)
    : file_(std::move(file)), spec_(std::move(spec)) {
  const TokenIndex& index = file_->index();
  if (spec_.order == SampleOrder::Arithmetic) {
    runs_ = arithmetic_runs(index, spec_);
    epoch_samples_ = std::ssize(runs_);
  } else {
    const double bytes =
        static_cast<double>(spec_.wanted.value_or(0)) * static_cast<double>(sizeof(SentenceRun));
    BEV_CHECK(bytes <= static_cast<double>(kMostIndexBytes), Data,
              "{}: Megatron-LM's order of {} samples would take {} of memory; data.order "
              "arithmetic takes that of one epoch",
              file_->prefix().string(), spec_.wanted.value_or(0), as_bytes(bytes));
    epoch_samples_ = std::ssize(megatron_runs(index, spec_, std::nullopt));
    runs_ = megatron_runs(index, spec_, spec_.wanted);
  }
  BEV_CHECK(!runs_.empty(), Internal, "{}: documents {} to {} have no sample",
            file_->prefix().string(), spec_.documents.begin, spec_.documents.end);
}

SentenceRun BertDataset::run(int64_t index) const {
  int64_t place = index % count();
  if (spec_.order == SampleOrder::Arithmetic && spec_.shuffled)
    place = ordered_sample(index, count(), spec_.seed).window;
  return runs_[static_cast<size_t>(place)];
}

template <class F>
auto BertDataset::with_random(int64_t index, F f) const {
  if (spec_.order == SampleOrder::Megatron) {
    // After the last sample the first follows again.
    NumpyRandom random(static_cast<uint32_t>(spec_.seed + static_cast<uint64_t>(index % count())));
    return f(random);
  }
  SampleRandom random{SampleStream(mix_key(spec_.seed, "masked samples"), index)};
  return f(random);
}

template <class Random>
BertDataset::Segments BertDataset::divide(const SentenceRun& run, Random& random) const {
  Segments pair;
  int64_t middle = run.end;
  if (spec_.pairs) {
    const int64_t sentences = run.end - run.begin;
    middle = run.begin + (sentences >= 3 ? random.integer(1, sentences) : 1);
    pair.swapped = random.random() < 0.5;
  }
  pair.first = {file_->stream_begin(run.begin), file_->stream_begin(middle)};
  pair.second = {file_->stream_begin(middle), file_->stream_begin(run.end)};
  if (pair.swapped) std::swap(pair.first, pair.second);
  while (pair.first.tokens() + pair.second.tokens() > run.target) {
    Segment& longer = pair.first.tokens() > pair.second.tokens() ? pair.first : pair.second;
    if (random.random() < 0.5) {
      ++longer.begin;
    } else {
      --longer.end;
    }
  }
  return pair;
}

template <class Random>
void BertDataset::fill(const SentenceRun& run, Random& random, HostBatch& batch, int64_t at) const {
  const Segments pair = divide(run, random);
  const MaskingVocabulary& vocabulary = *spec_.vocabulary;
  const auto first = static_cast<size_t>(pair.first.tokens()),
             second = static_cast<size_t>(pair.second.tokens());
  const bool has_second = second > 0;
  Workspace& work = workspace(spec_.sequence);
  std::vector<int32_t>& tokens = work.tokens;
  tokens.resize(first + 2 + (has_second ? second + 1 : 0));
  const std::span<int32_t> all(tokens);
  tokens.front() = vocabulary.classify;
  file_->read(pair.first.begin, all.subspan(1, first), spec_.vocab);
  tokens[first + 1] = vocabulary.separate;
  if (has_second) {
    file_->read(pair.second.begin, all.subspan(first + 2, second), spec_.vocab);
    tokens.back() = vocabulary.separate;
  }
  const double limit =
      masking_limit(spec_.mask_probability, spec_.most_predictions, run.target, std::ssize(tokens));
  work.masker.mask(all, limit, vocabulary, random);

  const auto row = batch.tokens.begin() + at * batch.length;
  std::fill(std::copy(tokens.begin(), tokens.end(), row), row + batch.length, vocabulary.pad);
  const auto types = batch.types.begin() + at * batch.length;
  std::fill_n(types, batch.length, 0);
  std::fill(types + static_cast<ptrdiff_t>(first) + 2, types + std::ssize(tokens), 1);
  std::iota(batch.positions.begin() + at * batch.length,
            batch.positions.begin() + (at + 1) * batch.length, 0);

  const int64_t each = batch.targets_each();
  BEV_CHECK(work.masker.predicted() <= each, Internal,
            "{} tokens of a sample are predicted, but a batch has {}", work.masker.predicted(),
            each);
  auto slot = static_cast<size_t>(at * each);
  const std::span<const int32_t> labels = work.masker.labels();
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == WordMasker::kNoLabel) continue;
    batch.marked[slot] = static_cast<int32_t>(at * batch.length + static_cast<int64_t>(i));
    batch.targets[slot] = labels[i];
    batch.weight[slot++] = 1;
  }
  for (; slot < static_cast<size_t>((at + 1) * each); ++slot) {
    batch.marked[slot] = static_cast<int32_t>(at * batch.length);
    batch.targets[slot] = 0;
    batch.weight[slot] = 0;
  }
  const auto sequence = static_cast<size_t>(at);
  batch.lengths[sequence] = static_cast<int32_t>(tokens.size());
  batch.pooled[sequence] = static_cast<int32_t>(at * batch.length);
  batch.label[sequence] = pair.swapped ? 1 : 0;
  batch.label_weight[sequence] = 1;
}

void BertDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  with_random(index, [&](auto& random) { fill(run(index), random, batch, at); });
  batch.number_rows(at, index);
}

SampleSource BertDataset::source(int64_t index) const {
  SampleSource source{.file = file_->prefix().string()};
  if (spec_.order == SampleOrder::Arithmetic) source.epoch = index / count();
  const Segments pair =
      with_random(index, [&](auto& random) { return divide(run(index), random); });
  for (const Segment& segment : {pair.first, pair.second}) {
    for (int64_t place = segment.begin; place < segment.end;) {
      const int64_t sequence = file_->sequence_at(place);
      const int64_t end = std::min(segment.end, file_->stream_begin(sequence + 1));
      source.pieces.push_back({.sequence = sequence,
                               .offset = place - file_->stream_begin(sequence),
                               .tokens = end - place});
      place = end;
    }
  }
  return source;
}

std::string BertDataset::describe(int64_t index) const {
  const SentenceRun sentences = run(index);
  return format("sample {}: sentences {} to {} of {}", index, sentences.begin, sentences.end - 1,
                file_->prefix().string());
}

}  // namespace bev
