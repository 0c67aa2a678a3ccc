#include "data/sentence_runs.h"

#include <algorithm>

#include "base/check.h"
#include "data/megatron/megatron_dataset.h"
#include "data/sample_order.h"

namespace bev {

namespace {

std::vector<SentenceRun> arithmetic_runs(const TokenIndex& index, const SentenceRunsSpec& spec) {
  std::vector<SentenceRun> runs;
  const SentencePart& part = spec.part;
  const uint64_t key = mix_key(part.seed, "sample lengths");
  const DocumentRule rule = part.document_rule(spec.least_sentences);
  for (int64_t i = part.documents.begin; i < part.documents.end; ++i) {
    if (document_use(index, i, rule) != DocumentUse::Usable) continue;
    SampleRandom random{SampleStream(key, i)};
    const auto draw_target = [&] {
      return random.random() < spec.short_probability ? random.integer(2, spec.longest + 1)
                                                      : spec.longest;
    };
    cut_document(
        index, i, {.least = spec.least_sentences}, draw_target,
        [&](int64_t begin, int64_t end, int64_t target) { runs.push_back({begin, end, target}); });
  }
  return runs;
}

std::vector<SentenceRun> megatron_runs(const TokenIndex& index, const SentenceRunsSpec& spec,
                                       std::optional<int64_t> wanted) {
  return map_sentences(index, {.first_document = spec.part.documents.begin,
                               .end_document = spec.part.documents.end,
                               .epochs = wanted ? int64_t{INT32_MAX} - 1 : 1,
                               .most_samples = wanted.value_or(INT64_MAX),
                               .longest = spec.longest,
                               .short_probability = spec.short_probability,
                               .seed = static_cast<uint32_t>(spec.part.seed),
                               .least_sentences = spec.least_sentences});
}

}  // namespace

size_t SentencePart::place(int64_t index, int64_t count) const {
  const bool permuted = order == SampleOrder::Arithmetic && shuffled;
  return static_cast<size_t>(permuted ? ordered_sample(index, count, seed).window : index % count);
}

void check_mapping_size(const TokenFile& file, std::optional<int64_t> wanted, size_t bytes_each) {
  const double bytes = static_cast<double>(wanted.value_or(0)) * static_cast<double>(bytes_each);
  BEV_CHECK(bytes <= static_cast<double>(kMostIndexBytes), Data,
            "{}: Megatron-LM's order of {} samples would take {} of memory; data.order "
            "arithmetic takes that of one epoch",
            file.prefix().string(), wanted.value_or(0), as_bytes(bytes));
}

SentenceCounts count_sentences(const TokenIndex& index, SequenceRange documents,
                               const DocumentRule& rule, int64_t room) {
  SentenceCounts counts{.documents = documents.end - documents.begin};
  for (int64_t i = documents.begin; i < documents.end; ++i) {
    switch (document_use(index, i, rule)) {
      case DocumentUse::Empty: ++counts.empty; break;
      case DocumentUse::TooFew: ++counts.too_few; break;
      case DocumentUse::Overlong: ++counts.overlong; break;
      case DocumentUse::Usable:
        ++counts.usable;
        for (int64_t s = index.document_begin(i); s < index.document_begin(i + 1); ++s)
          counts.cut += index.length(s) > room ? 1 : 0;
    }
  }
  return counts;
}

void add_sentence_pieces(const TokenFile& file, int64_t begin, int64_t end, SampleSource& source) {
  for (int64_t place = begin; place < end;) {
    const int64_t sequence = file.sequence_at(place), first = file.stream_begin(sequence);
    const int64_t piece_end = std::min(end, file.stream_begin(sequence + 1));
    source.pieces.push_back(
        {.sequence = sequence, .offset = place - first, .tokens = piece_end - place});
    place = piece_end;
  }
}

SentenceRuns::SentenceRuns(const TokenFile& file, const SentenceRunsSpec& spec) : part_(spec.part) {
  const TokenIndex& index = file.index();
  if (part_.order == SampleOrder::Arithmetic) {
    runs_ = arithmetic_runs(index, spec);
    epoch_samples_ = std::ssize(runs_);
  } else {
    check_mapping_size(file, part_.wanted, sizeof(SentenceRun));
    epoch_samples_ = std::ssize(megatron_runs(index, spec, std::nullopt));
    runs_ = megatron_runs(index, spec, part_.wanted);
  }
  BEV_CHECK(!runs_.empty(), Internal, "{}: documents {} to {} have no sample",
            file.prefix().string(), part_.documents.begin, part_.documents.end);
}

std::string SentenceRuns::describe(int64_t index, const TokenFile& file) const {
  const SentenceRun& run = at(index);
  return format("sample {}: sentences {} to {} of {}", index, run.begin, run.end - 1,
                file.prefix().string());
}

std::optional<int64_t> SentenceRuns::epoch_of(int64_t index) const {
  if (part_.order == SampleOrder::Megatron) return std::nullopt;
  return index / count();
}

}  // namespace bev
