#include "data/training_data.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/format.h"
#include "base/philox.h"
#include "config/blend.h"
#include "config/resolve.h"
#include "config/tokenizer_config.h"
#include "data/blended_dataset.h"
#include "data/megatron/megatron_blend.h"
#include "data/megatron/megatron_dataset.h"
#include "data/megatron/megatron_samplers.h"
#include "data/mock_dataset.h"
#include "data/sentence_samples.h"
#include "data/token_dataset.h"

namespace bev {

namespace {

// A part of a token file that belongs to one split.
struct FilePart {
  std::shared_ptr<const TokenFile> file;
  SequenceRange range{};
  SequenceRange documents{};  // of sentences
  int64_t windows = 0;        // samples of one epoch

  int64_t tokens() const { return file->stream_begin(range.end) - file->stream_begin(range.begin); }
};

struct OrderedPart {
  std::shared_ptr<const Dataset> samples;
  int64_t count = 0;
};

class Opener {
 public:
  Opener(const Config& config, size_t scan_bytes)
      : config_(config),
        scan_bytes_(scan_bytes),
        vocab_(resolve_model(config).vocab),
        wanted_(samples_needed(config)),
        sentences_(config.data.mock ? nullptr : sentence_samples(config, vocab_)),
        pad_(config.data.order == SampleOrder::Megatron && !sentences_ ? padding() : -1) {}

  TrainingData open() {
    const DataConfig& d = config_.data;
    if (d.mock) return mock();
    if (sentences_) data_.titles = d.titles_path;
    if (!d.path.empty()) {
      divided(blend_of(d.path));
    } else {
      whole(d.train_path, Split::Train);
      whole(d.valid_path, Split::Valid);
      whole(d.test_path, Split::Test);
    }
    return std::move(data_);
  }

 private:
  TrainingData mock() const {
    const auto seed = static_cast<uint64_t>(config_.train.seed);
    // As many as are asked for; the bound keeps the product in range.
    const int64_t batches = std::clamp<int64_t>(config_.eval.iterations, 1, 1 << 30);
    const int64_t count = batches * resolve_batch(config_).global_batch;
    return {.train = std::make_shared<MockDataset>(vocab_, seed),
            .valid = {std::make_shared<MockDataset>(vocab_, mix_key(seed, "validation")), count}};
  }

  void divided(const Blend& blend) {
    const auto weights = parse_split(config_.data.split);
    BEV_CHECK(weights.has_value(), Internal, "the split was not checked");
    std::array<std::vector<FilePart>, 3> parts;
    for (const std::string& prefix : blend.prefixes) {
      const auto file = opened(prefix);
      const auto ranges = split_sequences(*weights, divisible(*file), config_.train.compat);
      for (size_t i = 0; i < 3; ++i) parts[i].push_back(file_part(file, ranges[i]));
    }
    for (const Split split : {Split::Train, Split::Valid, Split::Test}) {
      const auto i = static_cast<size_t>(split);
      if ((*weights)[i] > 0) add_split(split, parts[i], blend);
    }
  }

  void whole(const TextList& list, Split split) {
    if (list.empty()) return;
    const Blend blend = blend_of(list);
    std::vector<FilePart> parts;
    for (const std::string& prefix : blend.prefixes) {
      const auto file = opened(prefix);
      parts.push_back(file_part(file, {0, divisible(*file)}));
    }
    add_split(split, parts, blend);
  }

  // Units that a split divides: sequences, or documents of sentences.
  int64_t divisible(const TokenFile& file) const {
    return sentences_ ? file.index().documents() : file.index().sequences();
  }

  FilePart file_part(const std::shared_ptr<const TokenFile>& file, SequenceRange range) const {
    FilePart part{.file = file, .range = range};
    if (sentences_) {
      const TokenIndex& index = file->index();
      part.range = {index.document_begin(range.begin), index.document_begin(range.end)};
      part.documents = range;
    } else {
      part.windows = (part.tokens() - 1) / config_.train.sequence;
    }
    return part;
  }

  std::shared_ptr<const TokenFile> opened(const std::string& prefix) {
    const auto file = std::make_shared<TokenFile>(
        prefix, config_.data.mmap ? TokenAccess::Mapped : TokenAccess::Pieces);
    const TokenIndex& index = file->index();
    BEV_CHECK(index.tokens() > 0, Data, "{}: the files hold no tokens", prefix);
    if (sentences_) check_sentences(*file);
    if (static_cast<size_t>(index.tokens()) * size_of(index.type()) > scan_bytes_) return file;
    const int64_t largest = file->largest_id();
    BEV_CHECK(
        largest < vocab_, Data,
        "{}: the largest token id is {}, but the model's vocabulary has {} ids (0 to {}); the "
        "file was made with another tokenizer. model.vocab {} would hold it",
        prefix, largest, vocab_, vocab_ - 1, largest + 1);
    return file;
  }

  // Documents of a single sequence each were not split into sentences: some samples need two, and
  // the others would hold the beginning of a document and nothing the rest.
  void check_split(const std::string& prefix, const TokenIndex& index) const {
    DocumentRule rule = sentences_->document_rule();
    const bool is_document_file = prefix.ends_with("_document");
    if (rule.least_sentences < 2 && !is_document_file) return;
    rule.least_sentences = 2;
    const SentenceCounts counts =
        count_sentences(index, {0, index.documents()}, rule, sentences_->room());
    BEV_CHECK(counts.usable > 0 || counts.too_few == 0, Data,
              "{}: no document has two sentences; {} needs sentences\n  make the file with "
              "`bevatron preprocess --split-sentences`{}; `bevatron train pretrain_gpt.py ...` "
              "trains a GPT on documents",
              prefix, sentences_->name(),
              is_document_file ? "" : sentences_->way_for_single_sentences());
  }

  // Documents that have no sample are counted in notes; without any other there is nothing to do.
  void check_sentences(const TokenFile& file) {
    const TokenIndex& index = file.index();
    const std::string prefix = file.prefix().string();
    BEV_CHECK(index.documents() > 0, Data,
              "{}: the index has no borders of documents, but a sample of {} is a run of "
              "sentences of one document; `bevatron preprocess --split-sentences` writes them",
              idx_path(prefix).string(), sentences_->name());
    check_split(prefix, index);
    sentences_->check(file, data_.notes);
    const SentenceCounts counts = count_sentences(index, {0, index.documents()},
                                                  sentences_->document_rule(), sentences_->room());
    const auto note = [&](int64_t count, std::string_view what) {
      if (count > 0) data_.notes.push_back(format("{}: {} {}", prefix, with_commas(count), what));
    };
    const std::string of = format("of {} documents", with_commas(counts.documents));
    note(counts.empty, of + " are empty and have no sample");
    note(counts.too_few, of + " have a single sentence and no sample");
    note(counts.overlong,
         format("{} have no sample, as in Megatron-LM: a sentence of them has more than {} tokens; "
                "data.order arithmetic cuts it",
                of, kOverlongSentence));
    note(counts.cut, format("sentences are longer than a sample of {} tokens and are cut",
                            config_.train.sequence));
  }

  // Parts without a whole sample are an error in training, and left out with a note elsewhere.
  void add_split(Split split, const std::vector<FilePart>& all, const Blend& blend) {
    std::vector<FilePart> parts;
    std::vector<double> weights;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!has_sample(split, all[i], blend)) continue;
      parts.push_back(all[i]);
      if (!blend.weights.empty()) weights.push_back(blend.weights[i]);
    }
    if (parts.empty()) return;
    // What one file of a blend lacked does not make the other one a file of its own.
    const bool blended = !blend.is_one_file();
    HeldSamples held = config_.data.order == SampleOrder::Megatron
                           ? megatron_order(split, parts, weights, blended)
                           : arithmetic_order(split, parts, weights, blended);
    if (held.count == 0) return;
    if (config_.data.sampler == SamplerKind::Cyclic) held.samples = cyclic(held);
    if (split == Split::Train) data_.train = held.samples;
    if (split == Split::Valid) data_.valid = held;
    if (split == Split::Test) data_.test = held;
    list_parts(split, parts, weights);
  }

  bool has_sample(Split split, const FilePart& part, const Blend& blend) {
    if (sentences_) return has_sentences(split, part);
    const int64_t sequence = config_.train.sequence, tokens = part.tokens();
    // Megatron reads what is too short over and over, except where size is the weight.
    const bool repeats = config_.data.order == SampleOrder::Megatron &&
                         (blend.is_one_file() || !blend.weights.empty());
    if (tokens > (repeats ? 0 : sequence)) return true;
    const std::string prefix = part.file->prefix().string();
    BEV_CHECK(split != Split::Train, Data,
              "{}: {} sequences with {} tokens are left for training, fewer than one sample of "
              "{} tokens and the one that follows; more text, a smaller train.sequence or another "
              "data.split is needed",
              prefix, part.range.end - part.range.begin, tokens, sequence);
    data_.notes.push_back(
        format("{}: {} tokens are left for {}, not enough for one sample: there will be none",
               prefix, tokens, kSplitNames[static_cast<size_t>(split)]));
    return false;
  }

  bool has_sentences(Split split, const FilePart& part) {
    const SentenceCounts counts = count_sentences(part.file->index(), part.documents,
                                                  sentences_->document_rule(), sentences_->room());
    if (counts.usable > 0) return true;
    const std::string prefix = part.file->prefix().string();
    BEV_CHECK(
        split != Split::Train, Data,
        "{}: {} documents are left for training, and none of them has a sample ({} are empty, "
        "{} have a single sentence, {} a sentence of more than {} tokens); more text or another "
        "data.split is needed",
        prefix, counts.documents, counts.empty, counts.too_few, counts.overlong, kOverlongSentence);
    data_.notes.push_back(format(
        "{}: {} documents are left for {}, and none of them has a sample: there will be none",
        prefix, counts.documents, kSplitNames[static_cast<size_t>(split)]));
    return false;
  }

  EodRules document_ends() const {
    const DataConfig& d = config_.data;
    return {.eod = d.eod,
            .mask_eod = d.mask_eod,
            .reset_positions = d.reset_positions,
            .reset_attention = d.reset_attention};
  }

  std::shared_ptr<const CountedDataset> sentence_part(Split split, FilePart& part,
                                                      SentencePart which) {
    which.documents = part.documents;
    which.order = config_.data.order;
    SentenceSamples::Opened opened = sentences_->open(part.file, which);
    part.windows = opened.epoch_samples;
    if (split == Split::Train) {
      std::vector<std::string>& notes = data_.notes;
      notes.insert(notes.end(), opened.notes.begin(), opened.notes.end());
    }
    return std::move(opened.samples);
  }

  OrderedPart arithmetic_part(Split split, FilePart& part, uint64_t seed) {
    const bool shuffled = split == Split::Train;
    if (sentences_) {
      auto samples = sentence_part(split, part, {.shuffled = shuffled, .seed = seed});
      const int64_t count = samples->count();
      return {std::move(samples), count};
    }
    const auto samples = std::make_shared<const TokenDataset>(
        part.file, part.range,
        TokenSamplesSpec{.sequence = config_.train.sequence,
                         .vocab = vocab_,
                         .shuffled = shuffled,
                         .seed = seed,
                         .ends = document_ends(),
                         .separate_sequences = config_.data.separate_sequences});
    return {samples, samples->windows()};
  }

  HeldSamples arithmetic_order(Split split, std::vector<FilePart>& parts,
                               std::vector<double> weights, bool blended) {
    const auto seed = static_cast<uint64_t>(config_.train.seed);
    std::vector<std::shared_ptr<const Dataset>> samples;
    std::vector<int64_t> windows;
    for (size_t i = 0; i < parts.size(); ++i) {
      // The same file may stand in a blend twice.
      const uint64_t own_seed = blended ? mix_key(mix_key(seed, "blend"), i) : seed;
      OrderedPart part = arithmetic_part(split, parts[i], own_seed);
      samples.push_back(std::move(part.samples));
      windows.push_back(part.count);
    }
    if (!blended) return {samples.front(), windows.front()};
    if (weights.empty()) weights.assign(windows.begin(), windows.end());
    const auto schedule = std::make_shared<const BlendSchedule>(weights);
    // Up to where the first of the files would begin again.
    int64_t count = INT64_MAX;
    for (size_t i = 0; i < parts.size(); ++i)
      count = std::min(count, schedule->place_of(i, windows[i]));
    return {std::make_shared<BlendedDataset>(
                std::move(samples), [schedule](int64_t index) { return schedule->at(index); }),
            count};
  }

  std::shared_ptr<const CountedDataset> megatron_part(Split split, FilePart& part,
                                                      std::optional<int64_t> wanted) {
    if (sentences_) {
      if (wanted) wanted = std::max<int64_t>(1, *wanted);
      return sentence_part(split, part,
                           {.wanted = wanted, .seed = static_cast<uint64_t>(config_.train.seed)});
    }
    return std::make_shared<const MegatronDataset>(
        part.file, MegatronSamplesSpec{.index = {.range = part.range,
                                                 .sequence = config_.train.sequence,
                                                 .wanted = wanted,
                                                 .seed = static_cast<uint32_t>(config_.train.seed)},
                                       .vocab = vocab_,
                                       .ends = document_ends(),
                                       .separate_sequences = config_.data.separate_sequences,
                                       .pad = pad_});
  }

  // Only today's Megatron masks labels that are padding.
  int32_t padding() const {
    if (config_.train.compat == Compat::Classic) return -1;
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(config_);
    const auto pad = tokenizer ? tokenizer->role_id(TokenRole::Pad) : std::nullopt;
    return padding_in_use(pad.value_or(-1), config_.data.eod);
  }

  HeldSamples megatron_order(Split split, std::vector<FilePart>& parts,
                             const std::vector<double>& weights, bool blended) {
    const int64_t wanted = wanted_[static_cast<size_t>(split)];
    if (!blended) {
      const auto samples = megatron_part(split, parts.front(), wanted);
      return {samples, samples->count(), true};
    }
    const auto blend = std::make_shared<const MegatronBlend>(
        blend_megatron(parts.size(), weights, wanted, config_.train.compat,
                       [&](size_t part, std::optional<int64_t> samples) {
                         return megatron_part(split, parts[part], samples);
                       }));
    if (blend->size() == 0) return {};
    const auto rule = [blend](int64_t place) {
      const auto i = static_cast<size_t>(place % blend->size());
      return BlendSchedule::Place{static_cast<size_t>(blend->index.dataset[i]),
                                  blend->index.sample[i]};
    };
    const std::vector<std::shared_ptr<const Dataset>> samples(blend->parts.begin(),
                                                              blend->parts.end());
    return {std::make_shared<BlendedDataset>(samples, rule), blend->size(), true};
  }

  std::shared_ptr<const Dataset> cyclic(const HeldSamples& held) const {
    const int64_t micro = resolve_batch(config_).micro_batch;
    BEV_CHECK(held.count >= micro && held.count < kMostShuffled, Data,
              "data.sampler cyclic: {} samples cannot be shuffled; it takes at least one "
              "micro-batch ({}) and less than {}",
              held.count, micro, kMostShuffled);
    return std::make_shared<CyclicDataset>(held.samples,
                                           SamplerShape{.total = held.count, .micro_batch = micro});
  }

  void list_parts(Split split, const std::vector<FilePart>& parts,
                  const std::vector<double>& weights) {
    std::vector<double> shares = weights;
    if (shares.empty())
      for (const FilePart& part : parts) shares.push_back(static_cast<double>(part.windows));
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t windows = parts[i].windows;
      const double share = shares[i] / sum;
      const double read = share * static_cast<double>(wanted_[static_cast<size_t>(split)]);
      const double epochs = sentences_ ? read / static_cast<double>(windows)
                                       : read * static_cast<double>(config_.train.sequence) /
                                             static_cast<double>(parts[i].tokens());
      data_.parts.push_back({.split = split,
                             .prefix = parts[i].file->prefix(),
                             .range = parts[i].range,
                             .tokens = parts[i].tokens(),
                             .windows = windows,
                             .share = share,
                             .epochs = epochs});
    }
  }

  const Config& config_;
  size_t scan_bytes_;
  int64_t vocab_;
  std::array<int64_t, 3> wanted_;
  std::unique_ptr<SentenceSamples> sentences_;  // null: the family reads tokens
  int32_t pad_;
  TrainingData data_;
};

}  // namespace

TrainingData open_training_data(const Config& config, size_t scan_bytes) {
  TrainingData data = Opener(config, scan_bytes).open();
  BEV_CHECK(data.train != nullptr, Data, "{}: data.split {} leaves nothing for training",
            config.data.path.empty() ? std::string("the data") : config.data.path.front(),
            config.data.split);
  return data;
}

std::array<int64_t, 3> samples_needed(const Config& config) {
  const auto product = [](auto... factors) {
    constexpr double kMost = 1e15;  // more than anybody trains; keeps the products in range
    return static_cast<int64_t>(std::min(kMost, (static_cast<double>(factors) * ...)));
  };
  const int64_t batch = resolve_batch(config).global_batch;
  const int64_t iterations = resolve_iterations(config);
  const EvalConfig& eval = config.eval;
  // One validation every interval, and one at the end.
  const int64_t validations = (eval.interval > 0 ? iterations / eval.interval : 0) + 1;
  return {config.train.samples > 0 ? config.train.samples : product(iterations, batch),
          product(validations, eval.iterations, batch), product(eval.iterations, batch)};
}

namespace {

constexpr size_t kEnd = size_t{64} << 10;

std::string file_line(const std::filesystem::path& path) {
  const PositionedFile file(path);
  const size_t bytes = file.size(), end = std::min(bytes, kEnd);
  std::vector<std::byte> ends(2 * end);
  file.read(0, std::span(ends).first(end));
  file.read(bytes - end, std::span(ends).last(end));
  return format("{}: {} bytes, ends {}\n", path.string(), bytes, sha256(ends).substr(0, 16));
}

}  // namespace

std::string fingerprint(const TrainingData& data) {
  std::set<std::filesystem::path> prefixes;
  for (const TrainingData::Part& part : data.parts) prefixes.insert(part.prefix);
  if (!data.titles.empty()) prefixes.insert(data.titles);
  std::string text;
  for (const std::filesystem::path& prefix : prefixes) {
    text += file_line(prefix.string() + ".bin");
    text += file_line(prefix.string() + ".idx");
  }
  return text;
}

}  // namespace bev
