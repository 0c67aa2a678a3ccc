#include "data/t5_dataset.h"

#include <algorithm>

#include "data/padded_text.h"

namespace bev {

namespace {

// Of one sample; kept for the next one that this thread reads.
struct SpanWorkspace {
  SpanMasker masker;
  std::vector<int32_t> tokens;
  T5Texts texts;
};

SpanWorkspace& span_workspace(const T5SamplesSpec& spec) {
  thread_local SpanWorkspace work;
  const auto tokens = static_cast<size_t>(spec.sequence);
  const auto decoder = static_cast<size_t>(spec.decoder_sequence);
  work.masker.reserve(tokens);
  work.tokens.reserve(tokens);
  work.texts.encoder.reserve(tokens);
  work.texts.decoder.reserve(decoder);
  work.texts.targets.reserve(decoder);
  return work;
}

}  // namespace

void split_at_spans(std::span<const int32_t> tokens, const SpanMasker& masker,
                    const SpanVocabulary& vocabulary, T5Texts& texts) {
  const auto append = [&](std::vector<int32_t>& text, size_t begin, size_t end) {
    const std::span<const int32_t> part = tokens.subspan(begin, end - begin);
    text.insert(text.end(), part.begin(), part.end());
  };
  texts.encoder.clear();
  texts.targets.clear();
  size_t begin = 0;
  for (size_t i = 0; i < masker.spans(); ++i) {
    const std::span<const int32_t> span = masker.span(i);
    const int32_t sentinel = vocabulary.sentinels[i];
    append(texts.encoder, begin, static_cast<size_t>(span.front()));
    texts.encoder.push_back(sentinel);
    texts.targets.push_back(sentinel);
    for (const int32_t position : span)
      texts.targets.push_back(tokens[static_cast<size_t>(position)]);
    begin = static_cast<size_t>(span.back()) + 1;
  }
  append(texts.encoder, begin, tokens.size());
  texts.decoder.assign(1, vocabulary.begin);
  texts.decoder.insert(texts.decoder.end(), texts.targets.begin(), texts.targets.end());
  texts.targets.push_back(vocabulary.end);
  texts.lacked_room = masker.lacked_room();
}

void put_t5_texts(const T5Texts& texts, int32_t pad, HostBatch& batch, int64_t at) {
  put_padded(texts.encoder, pad, batch.text(kEncoderText), at);
  HostText& decoder = batch.text(kDecoderText);
  put_padded(texts.decoder, pad, decoder, at);
  const auto first = at * decoder.length;
  const auto targets = decoder.targets.begin() + first;
  std::fill(std::copy(texts.targets.begin(), texts.targets.end(), targets),
            targets + decoder.length, pad);
  const auto weight = decoder.weight.begin() + first;
  std::fill(std::fill_n(weight, texts.targets.size(), 1.0f), weight + decoder.length, 0.0f);
}

T5Dataset::T5Dataset(std::shared_ptr<const TokenFile> file, T5SamplesSpec spec)
    : file_(std::move(file)),
      spec_(std::move(spec)),
      runs_(*file_, {.part = spec_.part,
                     .longest = spec_.longest(),
                     .short_probability = spec_.short_probability}) {}

int64_t T5Dataset::stream_end(const SentenceRun& run) const {
  return std::min(file_->stream_begin(run.end), file_->stream_begin(run.begin) + run.target);
}

const T5Texts& T5Dataset::texts(int64_t index) const {
  SpanWorkspace& work = span_workspace(spec_);
  const SentenceRun& run = runs_.at(index);
  const int64_t begin = file_->stream_begin(run.begin);
  work.tokens.resize(static_cast<size_t>(stream_end(run) - begin));
  file_->read(begin, work.tokens, spec_.vocab);
  const SpanLimits limits{.tokens = masking_limit(spec_.mask_probability, spec_.most_predictions,
                                                  run.target, std::ssize(work.tokens)),
                          .sentinels = std::ssize(spec_.vocabulary->sentinels),
                          .decoder = spec_.decoder_sequence};
  runs_.with_random(index, "masked spans", [&](auto& random) {
    work.masker.choose(work.tokens, limits, spec_.vocabulary->words, random);
  });
  split_at_spans(work.tokens, work.masker, *spec_.vocabulary, work.texts);
  return work.texts;
}

void T5Dataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  put_t5_texts(texts(index), spec_.vocabulary->pad, batch, at);
  batch.number_rows(at, index);
}

SampleSource T5Dataset::source(int64_t index) const {
  SampleSource source{.file = file_->prefix().string(), .epoch = runs_.epoch_of(index)};
  const SentenceRun& run = runs_.at(index);
  add_sentence_pieces(*file_, file_->stream_begin(run.begin), stream_end(run), source);
  return source;
}

std::string T5Dataset::describe(int64_t index) const { return runs_.describe(index, *file_); }

}  // namespace bev
