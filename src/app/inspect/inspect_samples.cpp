#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/verb_config.h"
#include "app/inspect/inspect_verbs.h"
#include "base/check.h"
#include "base/json.h"
#include "config/tokenizer_config.h"
#include "data/training_data.h"
#include "model/family/family.h"
#include "text/utf8.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 4> kInspectSamplesFlags{{
    {"--first", "K", "how many samples are shown [default: 4]"},
    {"--from", "I", "the number of the first one, from 0 on [default: 0]"},
    {"--part", "NAME",
     "train, valid or test; --split with one of the three means the same [default: train]"},
    {"--json", "", "print JSON with stable keys"},
}};

constexpr std::array<std::string_view, 3> kSplits{"train", "valid", "test"};

// --split also divides the data, as in training: only the names of parts are ours.
std::vector<std::string> with_part(std::span<const std::string> args) {
  std::vector<std::string> out(args.begin(), args.end());
  const auto is_part = [](std::string_view word) {
    return std::find(kSplits.begin(), kSplits.end(), word) != kSplits.end();
  };
  constexpr std::string_view kFlag = "--split", kAttached = "--split=";
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == kFlag && i + 1 < out.size() && is_part(out[i + 1])) out[i] = "--part";
    if (out[i].starts_with(kAttached) && is_part(out[i].substr(kAttached.size())))
      out[i] = "--part=" + out[i].substr(kAttached.size());
  }
  return out;
}

// A sample as the model gets it, and where it was found.
struct ShownSample {
  int64_t index;
  SampleSource source;
  HostBatch batch;
  // The tokens and the last label; of padded samples the tokens of the first text before the
  // padding.
  std::vector<int32_t> text;
  bool has_order = false;  // the order of its segments is predicted

  bool is_masked() const { return !batch.marked.empty(); }
  bool has_decoder() const { return batch.text_count() == 2 && !decoder().targets.empty(); }
  bool is_query_of_block() const { return batch.text_count() == 2 && !has_decoder(); }
  const HostText& decoder() const { return batch.text(kDecoderText); }
};

// The tokens before the padding. REQUIRES: the text has lengths.
std::span<const int32_t> used_tokens(const HostText& text) {
  return std::span<const int32_t>(text.tokens).first(static_cast<size_t>(text.lengths.front()));
}

ShownSample look_at(const Dataset& samples, int64_t index, const Config& config,
                    const BatchSpec& fields) {
  ShownSample shown{.index = index, .source = samples.source(index), .batch = {}, .text = {}};
  shown.batch.resize(1, fields);
  samples.read(index, shown.batch, 0);
  shown.text.assign(shown.batch.tokens.begin(), shown.batch.tokens.end());
  shown.has_order = shown.is_masked() && config.model.binary_head;
  if (!shown.batch.lengths.empty()) {
    shown.text.resize(static_cast<size_t>(shown.batch.lengths.front()));
  } else {
    shown.text.push_back(shown.batch.targets.back());
  }
  return shown;
}

// Text in quotes, each end of a document marked outside of them; ids where nobody knows the text.
class TextView {
 public:
  explicit TextView(const Config& config)
      : tokenizer_(tokenizer_of(config)),
        // The [SEP] of BERT ends documents for a GPT only.
        eod_(config.model.family == ModelFamily::Gpt ? config.data.eod : -1) {}

  bool knows_text() const { return tokenizer_ != nullptr; }

  std::string line(std::span<const int32_t> ids) const {
    std::string out;
    while (!ids.empty()) {
      const auto end = std::find(ids.begin(), ids.end(), eod_);
      const auto count = static_cast<size_t>(end - ids.begin());
      if (count > 0) add(out, part(ids.first(count)));
      if (end != ids.end()) add(out, "[end of document]");
      ids = ids.subspan(std::min(ids.size(), count + 1));
    }
    return out;
  }

  std::string plain(std::span<const int32_t> ids) const {
    return replace_invalid_utf8(tokenizer_->decode(ids));
  }

  // Where the first [SEP] is, or the number of ids.
  size_t find_separator(std::span<const int32_t> ids) const {
    const std::optional<int32_t> id =
        knows_text() ? tokenizer_->role_id(TokenRole::Separate) : std::nullopt;
    return static_cast<size_t>(std::find(ids.begin(), ids.end(), id.value_or(-1)) - ids.begin());
  }

  // "[MASK]", or the id if the tokenizer has no name for it.
  std::string token(int32_t id) const {
    const bool has_name = knows_text() && id < tokenizer_->vocab_size();
    return has_name ? tokenizer_->token_name(id) : format("{}", id);
  }

 private:
  static void add(std::string& out, const std::string& more) {
    if (!out.empty()) out += ' ';
    out += more;
  }
  std::string part(std::span<const int32_t> ids) const {
    if (knows_text()) return Json(plain(ids)).dump();
    return format("{}", fmt::join(ids, " "));
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  int64_t eod_;
};

// "7, 12-15".
std::string masked_positions(const std::vector<float>& weights) {
  std::string out;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != 0.0f) continue;
    const size_t first = i;
    while (i + 1 < weights.size() && weights[i + 1] == 0.0f) ++i;
    out += format("{}{}", out.empty() ? "" : ", ", first);
    if (i > first) out += format("-{}", i);
  }
  return out;
}

std::string tokens_of(const SampleSource::Piece& piece) {
  if (piece.tokens == 1) return format("token {}", piece.offset);
  return format("tokens {} to {}", piece.offset, piece.offset + piece.tokens - 1);
}

// "4 [MASK] for fox, 9 kept over, 12 cat for house".
std::string predictions_of(const ShownSample& shown, const TextView& view) {
  const HostBatch& batch = shown.batch;
  std::string out;
  for (size_t i = 0; i < batch.marked.size(); ++i) {
    if (batch.weight[i] == 0.0f) continue;
    const int32_t read = batch.tokens[static_cast<size_t>(batch.marked[i])];
    out += format("{}{} ", out.empty() ? "" : ", ", batch.marked[i]);
    out += read == batch.targets[i]
               ? format("kept {}", view.token(read))
               : format("{} for {}", view.token(read), view.token(batch.targets[i]));
  }
  return out;
}

// "sample 4  PREFIX, epoch 0".
std::string heading(const ShownSample& shown) {
  const SampleSource& source = shown.source;
  return format("sample {}  {}{}", shown.index, source.file.empty() ? "made up" : source.file,
                source.epoch ? format(", epoch {}", *source.epoch) : std::string());
}

void print_sentences(std::span<const SampleSource::Piece> pieces) {
  for (const SampleSource::Piece& piece : pieces)
    fmt::print("  sentence {}, {}\n", piece.sequence, tokens_of(piece));
}

void print_span_sample(const ShownSample& shown, const TextView& view) {
  const HostText& decoder = shown.decoder();
  const auto targets = static_cast<size_t>(decoder.valid_tokens());
  fmt::print("{}, {} of {} encoder tokens and {} of {} decoder tokens used\n", heading(shown),
             shown.text.size(), shown.batch.length, used_tokens(decoder).size(), decoder.length);
  fmt::print("  {}\n", view.line(shown.text));
  fmt::print("  target  {}\n", view.line(std::span<const int32_t>(decoder.targets).first(targets)));
  print_sentences(shown.source.pieces);
}

// [CLS] title [SEP] block [SEP], or [CLS] block [SEP]. Empty if there is no title.
struct ContextParts {
  std::span<const int32_t> title, block;
};

ContextParts context_parts(const ShownSample& shown, const TextView& view) {
  const std::span<const int32_t> context = used_tokens(shown.batch.text(kContextText));
  const size_t first = view.find_separator(context);
  if (first + 1 >= context.size()) return {{}, context};
  return {context.first(first + 1), context.subspan(first + 1)};
}

void print_block_sample(const ShownSample& shown, const TextView& view) {
  const HostText& context = shown.batch.text(kContextText);
  fmt::print("{}, query of {} and context of {} tokens, of {} at most\n", heading(shown),
             shown.text.size(), used_tokens(context).size(), context.length);
  const ContextParts parts = context_parts(shown, view);
  fmt::print("  query  {}\n", view.line(shown.text));
  if (!parts.title.empty()) fmt::print("  title  {}\n", view.line(parts.title));
  fmt::print("  block  {}\n", view.line(parts.block));
  const std::span<const SampleSource::Piece> pieces(shown.source.pieces);
  if (pieces.empty()) return;
  fmt::print("  query: sentence {}, {}; block:\n", pieces.front().sequence,
             tokens_of(pieces.front()));
  print_sentences(pieces.subspan(1));
}

void print_masked_sample(const ShownSample& shown, const TextView& view) {
  const HostBatch& batch = shown.batch;
  const auto predicted = static_cast<int64_t>(batch.valid_tokens());
  fmt::print("{}, {} of {} tokens used, {} predicted{}\n", heading(shown), shown.text.size(),
             batch.length, predicted,
             !shown.has_order           ? ""
             : batch.label.front() == 0 ? ", segments in order"
                                        : ", segments swapped");
  const std::span<const int32_t> text(shown.text);
  const auto second = static_cast<size_t>(std::find(batch.types.begin(), batch.types.end(), 1) -
                                          batch.types.begin());
  fmt::print("  {}\n", view.line(text.first(std::min(second, text.size()))));
  if (second < text.size()) fmt::print("  {}\n", view.line(text.subspan(second)));
  if (predicted > 0) fmt::print("  predicted  {}\n", predictions_of(shown, view));
  print_sentences(shown.source.pieces);
}

void print_sample(const ShownSample& shown, const TextView& view) {
  if (shown.is_masked()) return print_masked_sample(shown, view);
  if (shown.has_decoder()) return print_span_sample(shown, view);
  if (shown.is_query_of_block()) return print_block_sample(shown, view);
  const SampleSource& source = shown.source;
  fmt::print("{}, {} tokens and the label of the last\n", heading(shown),
             shown.batch.tokens.size());
  std::span<const int32_t> left(shown.text);
  if (source.pieces.empty()) fmt::print("  {}\n", view.line(left));
  for (const SampleSource::Piece& piece : source.pieces) {
    const size_t count = std::min(left.size(), static_cast<size_t>(piece.tokens));
    fmt::print("  sequence {}, {}\n    {}\n", piece.sequence, tokens_of(piece),
               view.line(left.first(count)));
    left = left.subspan(count);
  }
  const std::string masked = masked_positions(shown.batch.weight);
  if (!masked.empty()) fmt::print("  without loss  {}\n", masked);
}

void add_spans(const ShownSample& shown, const TextView& view, Json& out) {
  const HostText& decoder = shown.decoder();
  const auto targets = static_cast<size_t>(decoder.valid_tokens());
  std::vector<int32_t> labels(decoder.targets.begin(), decoder.targets.end());
  std::fill(labels.begin() + static_cast<ptrdiff_t>(targets), labels.end(), -1);
  out["length"] = shown.batch.lengths.front();
  out["decoder_tokens"] = decoder.tokens;
  out["decoder_length"] = decoder.lengths.front();
  out["labels"] = labels;
  out["loss_mask"] = std::string(targets, '1') + std::string(labels.size() - targets, '0');
  if (view.knows_text())
    out["target_text"] = view.plain(std::span<const int32_t>(decoder.targets).first(targets));
}

void add_block(const ShownSample& shown, const TextView& view, Json& out) {
  const HostText& context = shown.batch.text(kContextText);
  out["length"] = shown.batch.lengths.front();
  out["context_tokens"] = context.tokens;
  out["context_length"] = context.lengths.front();
  if (!view.knows_text()) return;
  const ContextParts parts = context_parts(shown, view);
  out["title_text"] = view.plain(parts.title);
  out["block_text"] = view.plain(parts.block);
}

Json json_of(const ShownSample& shown, const TextView& view) {
  const HostBatch& batch = shown.batch;
  Json out{{"index", shown.index},
           {"file", shown.source.file},
           {"epoch", shown.source.epoch ? Json(*shown.source.epoch) : Json()},
           {"tokens", batch.tokens},
           {"position_ids", batch.positions}};
  Json& pieces = out["pieces"] = Json::array();
  for (const SampleSource::Piece& piece : shown.source.pieces)
    pieces.push_back(
        {{"sequence", piece.sequence}, {"offset", piece.offset}, {"tokens", piece.tokens}});
  if (shown.is_masked()) {
    std::vector<int32_t> labels(batch.tokens.size(), -1);
    std::string mask(labels.size(), '0');
    for (size_t i = 0; i < batch.marked.size(); ++i) {
      if (batch.weight[i] == 0.0f) continue;
      const auto at = static_cast<size_t>(batch.marked[i]);
      labels[at] = batch.targets[i];
      mask[at] = '1';
    }
    out["labels"] = labels;
    out["loss_mask"] = mask;
    out["types"] = batch.types;
    out["length"] = batch.lengths.front();
    if (shown.has_order) out["is_random"] = batch.label.front();
  } else if (shown.has_decoder()) {
    add_spans(shown, view, out);
  } else if (shown.is_query_of_block()) {
    add_block(shown, view, out);
  } else {
    std::string mask;
    for (const float weight : batch.weight) mask += weight == 0.0f ? '0' : '1';
    out["labels"] = batch.targets;
    out["loss_mask"] = mask;
  }
  if (!batch.document_start.empty()) out["document_start"] = batch.document_start;
  if (view.knows_text()) out["text"] = view.plain(shown.text);
  return out;
}

const Dataset& samples_of(const TrainingData& data, size_t split, int64_t end) {
  if (split == 0) return *data.train;
  const HeldSamples& held = split == 1 ? data.valid : data.test;
  BEV_CHECK(held.samples != nullptr, Data, "there are no samples for {}", kSplitNames[split]);
  BEV_CHECK(end <= held.count, Usage, "samples up to {} are wanted, but there are {} for {}",
            end - 1, held.count, kSplitNames[split]);
  return *held.samples;
}

}  // namespace

int inspect_samples(std::span<const std::string> args) {
  const auto loaded = config_for(
      {.name = "inspect samples",
       .summary =
           "Shows what a training will see: samples with the place they come from, their "
           "text, the borders of documents and what has no loss. It takes the "
           "configuration of the training; what samples do not depend on may be left out. "
           "For a BERT it shows the segments, the masks and the tokens behind the masks, for "
           "a T5 the texts of encoder and decoder, for a bi-encoder query, title and block.",
       .own = kInspectSamplesFlags,
       .purpose = Purpose::Train,
       .complete = fill_required_fields},
      with_part(args));
  if (!loaded) return 0;
  const Config& config = loaded->config;
  const int64_t from = own_integer(*loaded, "--from", 0, 0, int64_t{1} << 53);
  const int64_t count = own_integer(*loaded, "--first", 4, 1, 1 << 20);
  const std::string name = loaded->own_text("--part", "train");
  const auto split =
      static_cast<size_t>(std::find(kSplits.begin(), kSplits.end(), name) - kSplits.begin());
  BEV_CHECK(split < kSplits.size(), Usage, "--part {}: train, valid or test is wanted", name);

  const TrainingData data = open_training_data(config, 0);
  for (const std::string& note : data.notes) print_stderr("bevatron: note: {}\n", note);
  const bool has_length =
      loaded->origins.contains("train.iterations") || loaded->origins.contains("train.samples");
  if (config.data.order == SampleOrder::Megatron && !has_length)
    print_stderr(
        "bevatron: note: Megatron-LM's order depends on the length of the training, which is not "
        "given; this is the order of one epoch\n");
  const Dataset& samples = samples_of(data, split, from + count);
  const TextView view(config);
  const BatchSpec fields = model_spec(config).batch;
  Json list = Json::array();
  for (int64_t i = from; i < from + count; ++i) {
    const ShownSample shown = look_at(samples, i, config, fields);
    if (loaded->has("--json")) {
      list.push_back(json_of(shown, view));
    } else {
      print_sample(shown, view);
    }
  }
  if (loaded->has("--json"))
    fmt::print("{}\n", Json{{"split", name},
                            {"order", name_of_choice(config.data.order)},
                            {"samples", std::move(list)}}
                           .dump(2));
  return 0;
}

}  // namespace bev::app
