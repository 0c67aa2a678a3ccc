#include "data/training_data.h"

#include <algorithm>

#include "base/check.h"
#include "base/philox.h"
#include "config/resolve.h"
#include "data/mock_samples.h"
#include "data/token_samples.h"

namespace bev {

namespace {

class Opener {
 public:
  Opener(const Config& config, size_t scan_bytes) : config_(config), scan_bytes_(scan_bytes) {}

  TrainingData open() {
    const DataConfig& d = config_.data;
    if (d.mock) return mock();
    if (!d.path.empty()) {
      divided(d.path.front());
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
    const int64_t vocab = resolve_model(config_).vocab;
    // As many as are asked for; the bound keeps the product in range.
    const int64_t batches = std::clamp<int64_t>(config_.eval.iterations, 1, 1 << 30);
    const int64_t count = batches * resolve_batch(config_).global_batch;
    return {.train = std::make_shared<MockSamples>(vocab, seed),
            .valid = {std::make_shared<MockSamples>(vocab, mix_key(seed, "validation")), count}};
  }

  void divided(const std::string& prefix) {
    const auto file = opened(prefix);
    const auto weights = parse_split(config_.data.split);
    BEV_CHECK(weights.has_value(), Internal, "the split was not checked");
    const auto ranges = split_sequences(*weights, file->index().sequences(), config_.train.compat);
    for (const Split split : {Split::Train, Split::Valid, Split::Test}) {
      const auto i = static_cast<size_t>(split);
      if ((*weights)[i] > 0) part(file, ranges[i], split);
    }
  }

  void whole(const TextList& prefixes, Split split) {
    if (prefixes.empty()) return;
    const auto file = opened(prefixes.front());
    part(file, {0, file->index().sequences()}, split);
  }

  std::shared_ptr<const TokenFile> opened(const std::string& prefix) const {
    const auto file = std::make_shared<TokenFile>(prefix);
    const TokenIndex& index = file->index();
    BEV_CHECK(index.tokens() > 0, Data, "{}: the files hold no tokens", prefix);
    const int64_t vocab = resolve_model(config_).vocab;
    if (static_cast<size_t>(index.tokens()) * size_of(index.type()) > scan_bytes_) return file;
    const int64_t largest = file->largest_id();
    BEV_CHECK(
        largest < vocab, Data,
        "{}: the largest token id is {}, but the model's vocabulary has {} ids (0 to {}); the "
        "file was made with another tokenizer. model.vocab {} would hold it",
        prefix, largest, vocab, vocab - 1, largest + 1);
    return file;
  }

  void part(const std::shared_ptr<const TokenFile>& file, SequenceRange range, Split split) {
    const DataConfig& d = config_.data;
    const int64_t sequence = config_.train.sequence;
    const int64_t tokens = file->stream_begin(range.end) - file->stream_begin(range.begin);
    const std::string_view name = kSplitNames[static_cast<size_t>(split)];
    if (tokens <= sequence) {
      BEV_CHECK(
          split != Split::Train, Data,
          "{}: {} sequences with {} tokens are left for training, fewer than one sample of "
          "{} tokens and the one that follows; more text, a smaller train.sequence or another "
          "data.split is needed",
          file->prefix().string(), range.end - range.begin, tokens, sequence);
      data_.notes.push_back(
          format("{}: {} tokens are left for {}, not enough for one sample: there will be none",
                 file->prefix().string(), tokens, name));
      return;
    }
    const auto samples = std::make_shared<const TokenSamples>(
        file, range,
        TokenSamplesSpec{.sequence = sequence,
                         .vocab = resolve_model(config_).vocab,
                         .shuffled = split == Split::Train,
                         .seed = static_cast<uint64_t>(config_.train.seed),
                         .eod = d.eod,
                         .mask_eod = d.mask_eod,
                         .reset_positions = d.reset_positions,
                         .reset_attention = d.reset_attention});
    if (split == Split::Train) data_.train = samples;
    if (split == Split::Valid) data_.valid = {samples, samples->windows()};
    if (split == Split::Test) data_.test = {samples, samples->windows()};
    data_.parts.push_back({.split = split,
                           .prefix = file->prefix(),
                           .range = range,
                           .tokens = tokens,
                           .windows = samples->windows()});
  }

  const Config& config_;
  size_t scan_bytes_;
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

}  // namespace bev
