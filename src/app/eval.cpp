// bevatron eval: the loss of a trained model on a text or a token file.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>
#include <optional>
#include <vector>

#include "app/device_flags.h"
#include "app/progress_line.h"
#include "app/terminal.h"
#include "app/verbs.h"
#include "base/check.h"
#include "base/json.h"
#include "config/tokenizer_facts.h"
#include "data/documents.h"
#include "data/token_file.h"
#include "data/training_data.h"
#include "infer/scoring.h"

namespace bev::app {

namespace {

constexpr std::array<OwnFlag, 10> kFlags{{
    {"--data", "PREFIX", "a token file (PREFIX.bin, PREFIX.idx)"},
    {"--text", "FILE", "a text, encoded with the tokenizer of the training"},
    {"--documents", "NAME",
     "line, paragraph or file: what a document of --text is [default: line]"},
    {"--length", "N", "tokens of one window [default: as trained, at most the model's positions]"},
    {"--overlap", "N",
     "tokens at the start of a window that only give context [default: half a window]"},
    {"--batch", "N", "windows computed at a time [default: 8]"},
    kThreadsFlag,
    kDeviceFlag,
    kPrecisionFlag,
    {"--json", "", "print JSON with stable keys"},
}};

struct Text {
  TokenStream stream;
  std::string name;
  int64_t bytes = -1;  // of text behind the tokens; -1: not known
  std::vector<int32_t> ids{};
};

// Ends of documents are tokens but no text.
int64_t count_bytes(const TokenStream& stream, const Tokenizer& tokenizer) {
  std::array<int32_t, 4096> block;
  int64_t bytes = 0;
  for (int64_t place = 0; place < stream.size;) {
    const int64_t count = std::min<int64_t>(stream.size - place, block.size());
    const std::span<int32_t> part(block.data(), static_cast<size_t>(count));
    stream.read(place, part);
    bytes += static_cast<int64_t>(tokenizer.decode(part, SpecialIds::LeaveOut).size());
    place += count;
  }
  return bytes;
}

// A part of a token file as a stream.
TokenStream stream_in(const std::string& prefix, std::optional<SequenceRange> range,
                      const Config& config) {
  const auto file = std::make_shared<const TokenFile>(
      prefix, config.data.mmap ? TokenAccess::Mapped : TokenAccess::Pieces);
  BEV_CHECK(file->index().tokens() > 0, Data, "{}: the files hold no tokens", prefix);
  if (!range) range = SequenceRange{0, file->index().sequences()};
  const int64_t begin = file->stream_begin(range->begin);
  return {.size = file->stream_begin(range->end) - begin,
          .read = [file, begin, vocab = config.model.vocab](int64_t at, std::span<int32_t> out) {
            file->read(begin + at, out, vocab);
          }};
}

// One stream behind the other.
TokenStream joined(TokenStream first, TokenStream second) {
  const int64_t size = first.size + second.size;
  return {.size = size,
          .read = [first = std::move(first), second = std::move(second)](int64_t at,
                                                                         std::span<int32_t> out) {
            const auto here = static_cast<size_t>(
                std::clamp<int64_t>(first.size - at, 0, static_cast<int64_t>(out.size())));
            if (here > 0) first.read(at, out.first(here));
            if (here < out.size())
              second.read(std::max<int64_t>(0, at - first.size), out.subspan(here));
          }};
}

void set_stream(Text& text, std::string name, TokenStream stream, const Config& config) {
  text.name = std::move(name);
  text.stream = std::move(stream);
  if (const auto tokenizer = tokenizer_of(config))
    text.bytes = count_bytes(text.stream, *tokenizer);
}

void from_text(Text& text, const std::string& path, DocumentBreak documents,
               const ModelFolder& folder) {
  const Config& config = folder.config;
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(config);
  BEV_CHECK(tokenizer != nullptr, Usage, "--text {}: {}; --data PREFIX scores a token file", path,
            why_no_tokenizer(folder));
  const MappedFile file(path);
  text.bytes = 0;
  const std::string_view all(reinterpret_cast<const char*>(file.bytes().data()),
                             file.bytes().size());
  for_each_document(all, documents, [&](std::string_view document) {
    tokenizer->encode(document, text.ids);
    if (const auto eod = tokenizer->eod_id()) text.ids.push_back(*eod);
    text.bytes += static_cast<int64_t>(document.size());
  });
  BEV_CHECK(!text.ids.empty(), Data, "{}: there is no text in the file", path);
  text.name = path;
  text.stream = stream_of(text.ids);
}

// The validation part of the data the model was trained on; of a blend, all files one after the
// other, each once.
void from_training(Text& text, const ModelFolder& folder) {
  const DataConfig& d = folder.config.data;
  BEV_CHECK(folder.is_run && (!d.path.empty() || !d.valid_path.empty()), Usage,
            "there is nothing to score: --data PREFIX or --text FILE names it");
  const ErrorContext context(
      "opening the validation data of the training; --data or --text names something else");
  const TrainingData data = open_training_data(folder.config, 0);
  std::string names;
  TokenStream stream;
  for (const TrainingData::Part& part : data.parts) {
    if (part.split != Split::Valid) continue;
    TokenStream next = stream_in(part.prefix.string(), part.range, folder.config);
    stream = names.empty() ? std::move(next) : joined(std::move(stream), std::move(next));
    names += (names.empty() ? "" : ", ") + part.prefix.string();
  }
  if (!names.empty()) return set_stream(text, names, std::move(stream), folder.config);
  throw Error(ErrorKind::Data,
              "the data of the training has no validation part; --data PREFIX or --text FILE names "
              "something to score");
}

struct Score {
  int64_t tokens = 0, bytes = -1;
  double nats = 0, seconds = 0;
  double loss() const { return nats / static_cast<double>(tokens); }
  double bits_per_byte() const { return nats / std::numbers::ln2 / static_cast<double>(bytes); }
};

void print_score(const Score& s, const Text& text, bool json) {
  if (json) {
    Json out{{"data", text.name},
             {"tokens", s.tokens},
             {"loss", s.loss()},
             {"perplexity", std::exp(s.loss())},
             {"seconds", s.seconds}};
    if (s.bytes > 0) {
      out["bytes"] = s.bytes;
      out["bits_per_byte"] = s.bits_per_byte();
    }
    fmt::print("{}\n", out.dump(2));
    return;
  }
  fmt::print("data          {}\n", text.name);
  fmt::print("tokens        {}\n", with_commas(s.tokens));
  fmt::print("loss          {:.4f} nats per token\n", s.loss());
  fmt::print("perplexity    {:.4f}\n", std::exp(s.loss()));
  if (s.bytes > 0)
    fmt::print("bits per byte {:.4f} over {} bytes\n", s.bits_per_byte(), with_commas(s.bytes));
}

}  // namespace

int eval(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "eval",
       .summary = "Scores a trained model: loss, perplexity and, with its tokenizer, bits per "
                  "byte. DIR is the folder of a `bevatron train`, one of its checkpoints or a "
                  "Hugging Face model. Without --data and --text the validation part of the "
                  "training data is scored.",
       .flags = kFlags,
       .positional = "DIR",
       .min_positional = 1,
       .max_positional = 1},
      args);
  if (!flags) return 0;
  flags->require_not_both("--data", "--text");
  const ModelFolder folder = open_model_folder(flags->positional().front());
  for (const std::string& line : folder.passed_over) say("note: {}\n", line);
  const Config& config = folder.config;
  const int64_t trained = config.train.sequence > 0 ? config.train.sequence : 1024;
  const int64_t length = flags->integer("--length", longest_sequence(folder, trained), 1,
                                        longest_sequence(folder, 1 << 28));
  const int64_t overlap = flags->integer("--overlap", length / 2, 0, length - 1);

  Text text;
  if (flags->has("--text")) {
    from_text(text, flags->path("--text"),
              static_cast<DocumentBreak>(flags->choice("--documents", 0, kDocumentBreakNames)),
              folder);
  } else if (flags->has("--data")) {
    const std::string prefix = flags->path("--data");
    set_stream(text, prefix, stream_in(prefix, std::nullopt, config), config);
  } else {
    from_training(text, folder);
  }

  const DeviceConfig device = device_from_flags(*flags);
  LoadedModel model(folder, device, flags->integer("--batch", 8, 1, 65536), length);
  const ScoringWindows windows(text.stream, length, overlap, static_cast<int32_t>(config.data.eod));
  ProgressLine progress("scoring", windows.windows(), "windows");
  Score result{.tokens = windows.scored(), .bytes = text.bytes};
  result.nats = score(model, windows, [&](int64_t done) { progress.update(done); });
  result.seconds = progress.seconds();
  print_score(result, text, flags->has("--json"));
  return 0;
}

}  // namespace bev::app
