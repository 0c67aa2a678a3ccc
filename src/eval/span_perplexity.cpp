#include "eval/span_perplexity.h"

#include <algorithm>

#include "base/check.h"
#include "data/sample_random.h"

namespace bev {

namespace {

// The shortest piece with one span: a decoder has its begin, a sentinel and a token.
constexpr int64_t kLeastDecoderTokens = 3;

int64_t longest(const std::vector<T5Texts>& samples, std::vector<int32_t> T5Texts::* text) {
  size_t most = 0;
  for (const T5Texts& sample : samples) most = std::max(most, (sample.*text).size());
  return static_cast<int64_t>(most);
}

class SpanSampler {
 public:
  SpanSampler(const SpanVocabulary& vocabulary, const SpanRule& rule)
      : vocabulary_(vocabulary), rule_(rule) {}

  void add_document(std::vector<int32_t> tokens, SpanText& text) {
    std::erase_if(tokens, [&](int32_t id) { return is_special(id); });
    const auto most = static_cast<size_t>(rule_.piece_tokens());
    for (std::span<const int32_t> left = tokens; !left.empty();) {
      const size_t size = std::min(most, left.size());
      add_piece(left.first(size), text);
      text.documents.push_back(text.document_count);
      left = left.subspan(size);
    }
    text.tokens += std::ssize(tokens);
    ++text.document_count;
  }

 private:
  bool is_special(int32_t id) const {
    const WordPieces& words = vocabulary_.words;
    return id == vocabulary_.begin || id == vocabulary_.end || id == vocabulary_.pad ||
           id == words.classify || id == words.separate;
  }

  void add_piece(std::span<const int32_t> tokens, SpanText& text) {
    const SpanLimits limits{
        .tokens = masking_limit(rule_.masked, 0, rule_.piece_tokens(), std::ssize(tokens)),
        .sentinels = std::ssize(vocabulary_.sentinels),
        .decoder = rule_.decoder_length()};
    SampleRandom random{
        SampleStream(mix_key(rule_.seed, "masked spans"), std::ssize(text.samples))};
    masker_.choose(tokens, limits, vocabulary_.words, random);
    T5Texts& texts = text.samples.emplace_back();
    split_at_spans(tokens, masker_, vocabulary_, texts);
    text.without_room += texts.lacked_room ? 1 : 0;
  }

  const SpanVocabulary& vocabulary_;
  SpanRule rule_;
  SpanMasker masker_;
};

}  // namespace

int64_t SpanRule::decoder_length() const {
  const double most = masking_limit(masked, 0, piece_tokens(), piece_tokens());
  const int64_t wanted = std::max(kLeastDecoderTokens, 1 + 2 * static_cast<int64_t>(most));
  return std::min(wanted, most_decoder_tokens);
}

std::string rule_in_words(const SpanRule& rule) {
  return format(
      "spans of about {:g} % of the tokens are replaced by sentinels, drawn with seed {} as in "
      "training, and predicted with their sentinels and an end; a piece is up to {} tokens of one "
      "document",
      100 * rule.masked, rule.seed, rule.piece_tokens());
}

int64_t SpanText::longest_encoder() const { return longest(samples, &T5Texts::encoder); }
int64_t SpanText::longest_decoder() const { return longest(samples, &T5Texts::decoder); }

SpanText span_text_of(const EvalText& text, const SpanVocabulary& vocabulary,
                      const SpanRule& rule) {
  SpanText result{.name = text.name};
  SpanSampler sampler(vocabulary, rule);
  for (const EvalDocument& document : text.documents) {
    std::vector<int32_t> ids(static_cast<size_t>(document.tokens));
    if (!ids.empty()) text.stream.read(document.begin, ids);
    sampler.add_document(std::move(ids), result);
  }
  BEV_CHECK(!result.samples.empty(), Data, "{}: there is nothing to score in the file", text.name);
  return result;
}

SpanScore score_spans(LoadedModel& model, const SpanText& text, int32_t pad,
                      FunctionRef<void(int64_t done)> on_done) {
  SpanScore result;
  HostBatch batch;
  batch.resize(model.config().train.micro_batch, model.placed().spec.batch);
  const int64_t count = std::ssize(text.samples);
  for (int64_t begin = 0; begin < count; begin += batch.sequences) {
    for (int64_t at = 0; at < batch.sequences; ++at) {
      const bool is_used = begin + at < count;
      put_t5_texts(text.samples[static_cast<size_t>(is_used ? begin + at : begin)], pad, batch, at);
      batch.number_rows(at, at);
      if (!is_used) batch.exclude(at);
    }
    const LossSum sum = model.executor().evaluate({&batch, 1}).front();
    result.nats += sum.sum;
    result.targets += static_cast<int64_t>(sum.count);
    if (batch.sequences == 1) result.samples.push_back(sum.sum);
    on_done(std::min(begin + batch.sequences, count));
  }
  return result;
}

}  // namespace bev
