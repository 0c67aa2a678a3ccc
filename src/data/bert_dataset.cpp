#include "data/bert_dataset.h"

#include <algorithm>

#include "base/check.h"
#include "data/padded_text.h"

namespace bev {

namespace {

constexpr std::string_view kRandomName = "masked samples";

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

BertDataset::BertDataset(std::shared_ptr<const TokenFile> file, BertSamplesSpec spec)
    : file_(std::move(file)),
      spec_(std::move(spec)),
      // Megatron-LM leaves room for two segments in a sample of one, too.
      runs_(*file_, {.part = spec_.part,
                     .longest = spec_.sequence - 3,
                     .short_probability = spec_.short_probability,
                     .least_sentences = spec_.least_sentences()}) {}

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
  tokens.front() = vocabulary.words.classify;
  file_->read(pair.first.begin, all.subspan(1, first), spec_.vocab);
  tokens[first + 1] = vocabulary.words.separate;
  if (has_second) {
    file_->read(pair.second.begin, all.subspan(first + 2, second), spec_.vocab);
    tokens.back() = vocabulary.words.separate;
  }
  const double limit =
      masking_limit(spec_.mask_probability, spec_.most_predictions, run.target, std::ssize(tokens));
  work.masker.mask(all, limit, vocabulary, random);

  put_padded(tokens, vocabulary.pad, batch, at);
  const auto types = batch.types.begin() + at * batch.length;
  std::fill(types + static_cast<ptrdiff_t>(first) + 2, types + std::ssize(tokens), 1);

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
  batch.label[sequence] = pair.swapped ? 1 : 0;
  batch.label_weight[sequence] = 1;
}

void BertDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  runs_.with_random(index, kRandomName,
                    [&](auto& random) { fill(runs_.at(index), random, batch, at); });
  batch.number_rows(at, index);
}

SampleSource BertDataset::source(int64_t index) const {
  SampleSource source{.file = file_->prefix().string(), .epoch = runs_.epoch_of(index)};
  const Segments pair = runs_.with_random(
      index, kRandomName, [&](auto& random) { return divide(runs_.at(index), random); });
  for (const Segment& segment : {pair.first, pair.second})
    add_sentence_pieces(*file_, segment.begin, segment.end, source);
  return source;
}

std::string BertDataset::describe(int64_t index) const { return runs_.describe(index, *file_); }

}  // namespace bev
