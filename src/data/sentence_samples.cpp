#include "data/sentence_samples.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"
#include "config/resolve.h"
#include "config/tokenizer_config.h"
#include "data/bert_dataset.h"
#include "data/ict_dataset.h"
#include "data/t5_dataset.h"

namespace bev {

namespace {

struct NamedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string source;
};

NamedTokenizer open_tokenizer_of(const Config& config) {
  NamedTokenizer found{tokenizer_of(config), tokenizer_spec(config).file()};
  BEV_CHECK(found.tokenizer != nullptr, Usage,
            "model.family {} needs the files of a tokenizer: set data.tokenizer and "
            "data.vocab_file",
            name_of_choice(config.model.family));
  return found;
}

// `use`: why the model sees the last of the ids.
void check_ids(const NamedTokenizer& from, int64_t vocab, std::string_view use) {
  const int64_t ids = from.tokenizer->vocab_size();
  BEV_CHECK(ids <= vocab, Data,
            "{}: the tokenizer has {} ids, but the model's vocabulary has {}, and {}; set "
            "model.vocab to {} or more, or leave it out",
            from.source, ids, vocab, use, ids);
}

class BertSamples final : public SentenceSamples {
 public:
  BertSamples(const Config& config, int64_t vocab)
      : spec_{.sequence = config.train.sequence,
              .pairs = config.model.binary_head,
              .short_probability = config.data.short_seq_prob,
              .mask_probability = config.data.mask_prob,
              .most_predictions = config.data.max_predictions,
              .vocab = vocab} {
    spec_.part.order = config.data.order;
    const NamedTokenizer from = open_tokenizer_of(config);
    spec_.vocabulary =
        std::make_shared<const MaskingVocabulary>(masking_vocabulary(*from.tokenizer, from.source));
    check_ids(from, vocab, "any of them may replace a masked token");
  }

  std::string_view name() const override { return "BERT"; }
  DocumentRule document_rule() const override {
    return spec_.part.document_rule(spec_.least_sentences());
  }
  int64_t room() const override { return spec_.room(); }
  std::string_view way_for_single_sentences() const override {
    return ", or train without pairs (--bert-no-binary-head)";
  }
  Opened open(const std::shared_ptr<const TokenFile>& file,
              const SentencePart& part) const override {
    BertSamplesSpec spec = spec_;
    spec.part = part;
    const auto samples = std::make_shared<const BertDataset>(file, spec);
    return {samples, samples->runs().epoch_samples()};
  }

 private:
  BertSamplesSpec spec_;
};

class T5Samples final : public SentenceSamples {
 public:
  T5Samples(const Config& config, int64_t vocab)
      : spec_{.sequence = config.train.sequence,
              .decoder_sequence = decoder_sequence(config),
              .short_probability = config.data.short_seq_prob,
              .mask_probability = config.data.mask_prob,
              .most_predictions = config.data.max_predictions,
              .vocab = vocab} {
    spec_.part.order = config.data.order;
    const NamedTokenizer from = open_tokenizer_of(config);
    spec_.vocabulary =
        std::make_shared<const SpanVocabulary>(span_vocabulary(*from.tokenizer, from.source));
    check_ids(from, vocab, "sentinels (<extra_id_0>, ...) are among the last");
  }

  std::string_view name() const override { return "T5"; }
  DocumentRule document_rule() const override { return spec_.part.document_rule(1); }
  int64_t room() const override { return spec_.longest(); }
  Opened open(const std::shared_ptr<const TokenFile>& file,
              const SentencePart& part) const override {
    T5SamplesSpec spec = spec_;
    spec.part = part;
    const auto samples = std::make_shared<const T5Dataset>(file, spec);
    Opened opened{samples, samples->runs().epoch_samples()};
    add_note_on_room(*samples, file->prefix().string(), opened.notes);
    return opened;
  }

 private:
  // Whether all spans fit, even if each has a single token.
  bool always_has_room() const {
    const auto most = static_cast<int64_t>(masking_limit(
        spec_.mask_probability, spec_.most_predictions, spec_.longest(), spec_.longest()));
    return most <= std::ssize(spec_.vocabulary->sentinels) &&
           1 + 2 * most <= spec_.decoder_sequence;
  }

  void add_note_on_room(const T5Dataset& samples, const std::string& prefix,
                        std::vector<std::string>& notes) const {
    constexpr int64_t kLookedAt = 1000;
    if (always_has_room()) return;
    const int64_t count = std::min(kLookedAt, samples.count());
    int64_t without_room = 0;
    for (int64_t i = 0; i < count; ++i) without_room += samples.texts(i).lacked_room ? 1 : 0;
    if (without_room == 0) return;
    notes.push_back(
        format("{}: {} of the first {} samples have masked spans without room in {} decoder "
               "tokens or without one of {} sentinels; these spans stay in the encoder's text "
               "(Megatron-LM ends with an error)",
               prefix, with_commas(without_room), with_commas(count), spec_.decoder_sequence,
               spec_.vocabulary->sentinels.size()));
  }

  T5SamplesSpec spec_;
};

class IctSamples final : public SentenceSamples {
 public:
  IctSamples(const Config& config, int64_t vocab)
      : spec_{.sequence = config.train.sequence,
              .single_sentences = config.data.single_sentences,
              .query_in_block = config.data.query_in_block,
              .vocab = vocab} {
    spec_.part.order = config.data.order;
    const NamedTokenizer from = open_tokenizer_of(config);
    const MaskingVocabulary ids = masking_vocabulary(*from.tokenizer, from.source);
    spec_.classify = ids.words.classify;
    spec_.separate = ids.words.separate;
    spec_.pad = ids.pad;
    if (config.data.titles_path.empty()) return;
    const std::string& prefix = config.data.titles_path;
    spec_.titles = std::make_shared<const TokenFile>(
        prefix, config.data.mmap ? TokenAccess::Mapped : TokenAccess::Pieces);
    BEV_CHECK(spec_.titles->index().documents() > 0, Data,
              "{}: the index has no borders of documents, of which each is a title",
              idx_path(prefix).string());
    const int64_t largest = spec_.titles->largest_id();
    BEV_CHECK(largest < vocab, Data,
              "{}: the largest token id is {}, but the model's vocabulary has {} ids; the file was "
              "made with another tokenizer",
              prefix, largest, vocab);
  }

  std::string_view name() const override { return "the inverse cloze task"; }
  DocumentRule document_rule() const override { return spec_.document_rule(); }
  int64_t room() const override { return spec_.sequence - 2; }
  std::string_view way_for_single_sentences() const override {
    return ", or use documents of one sentence (--use-one-sent-docs)";
  }

  void check(const TokenFile& file, std::vector<std::string>& notes) override {
    if (!spec_.titles) return;
    const TokenIndex& titles = spec_.titles->index();
    const std::string prefix = spec_.titles->prefix().string();
    BEV_CHECK(titles.documents() == file.index().documents(), Data,
              "{} has {} titles, but {} has {} documents: title i belongs to document i\n  make "
              "both files from the same input with `bevatron preprocess --json-keys text` "
              "(--split-sentences) and `--json-keys title`",
              prefix, titles.documents(), file.prefix().string(), file.index().documents());
    int64_t empty = 0, cut = 0;
    for (int64_t i = 0; i < titles.documents(); ++i) {
      const int64_t tokens = spec_.titles->stream_begin(titles.document_begin(i + 1)) -
                             spec_.titles->stream_begin(titles.document_begin(i));
      empty += tokens == 0 ? 1 : 0;
      cut += tokens > most_title_tokens(spec_.sequence) ? 1 : 0;
    }
    const std::string of = format("of {} titles", with_commas(titles.documents()));
    if (empty > 0) notes.push_back(format("{}: {} {} are empty", prefix, with_commas(empty), of));
    if (cut > 0)
      notes.push_back(format("{}: {} {} are longer than a sample of {} tokens and are cut", prefix,
                             with_commas(cut), of, spec_.sequence));
  }

  Opened open(const std::shared_ptr<const TokenFile>& file,
              const SentencePart& part) const override {
    IctSamplesSpec spec = spec_;
    spec.part = part;
    const auto samples = std::make_shared<const IctDataset>(file, spec);
    return {samples, samples->epoch_samples()};
  }

 private:
  IctSamplesSpec spec_;
};

}  // namespace

std::unique_ptr<SentenceSamples> sentence_samples(const Config& config, int64_t vocab) {
  switch (config.model.family) {
    case ModelFamily::Gpt: break;
    case ModelFamily::Bert: return std::make_unique<BertSamples>(config, vocab);
    case ModelFamily::T5: return std::make_unique<T5Samples>(config, vocab);
    case ModelFamily::Biencoder: return std::make_unique<IctSamples>(config, vocab);
  }
  return nullptr;
}

}  // namespace bev
