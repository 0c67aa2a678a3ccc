// bevatron tokenize, bevatron detokenize: text to ids and back, for people and pipes.
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

#include "app/cli/shared_flags.h"
#include "app/cli/stdio_files.h"
#include "app/cli/verbs.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "config/parse/notation.h"
#include "data/preprocess/text_reader.h"

namespace bev::app {

namespace {

enum class Format : uint8_t { Text, Json, Pieces, U16, I32, Count };
constexpr std::array<std::string_view, 6> kFormats{"text", "json", "pieces", "u16", "i32", "count"};

constexpr auto kTokenizeFlags = with_tokenizer_flags(std::array<VerbFlag, 4>{{
    {"--format", "NAME",
     "text: ids, a line for each document; json: the same as arrays; pieces: a line for each "
     "token; "
     "u16, i32: raw little-endian ids; count: how many [default: text]"},
    {"--documents", "NAME", "line, paragraph or file: what a document is [default: file]"},
    {"--append-eod", "", "end every document with the end-of-document token"},
    {"--time", "", "with --format count: JSON with the seconds that encoding took"},
}});

constexpr std::array<std::string_view, 4> kIdFormats{"text", "json", "u16", "i32"};

constexpr auto kBackFlags = with_tokenizer_flags(std::array<VerbFlag, 2>{{
    {"--format", "NAME", "of the ids: text, json, u16 or i32, as tokenize writes [default: text]"},
    {"--skip-special", "", "leave out special tokens"},
}});

template <class T>
void write_raw(std::span<const int32_t> ids, std::string_view name) {
  std::vector<T> raw;
  raw.reserve(ids.size());
  for (const int32_t id : ids) {
    BEV_CHECK(std::in_range<T>(id), Data, "id {} does not fit {}; legal: --format i32", id, name);
    raw.push_back(static_cast<T>(id));
  }
  std::fwrite(raw.data(), sizeof(T), raw.size(), stdout);
}

void write_text(std::span<const int32_t> ids) {
  std::string line;
  for (const int32_t id : ids) {
    if (!line.empty()) line += ' ';
    line += std::to_string(id);
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
}

void write_document(std::span<const int32_t> ids, Format how, const Tokenizer& tokenizer) {
  switch (how) {
    case Format::Text: return write_text(ids);
    case Format::Json:
      fmt::print("{}\n", Json(std::vector<int32_t>(ids.begin(), ids.end())).dump());
      return;
    case Format::Pieces:
      for (const int32_t id : ids) fmt::print("{}\t{}\n", id, tokenizer.token_name(id));
      return;
    case Format::U16: return write_raw<uint16_t>(ids, "u16");
    case Format::I32: return write_raw<int32_t>(ids, "i32");
    case Format::Count: return;
  }
}

struct Counts {
  int64_t documents = 0, tokens = 0, bytes = 0;
  double seconds = 0;
};

void print_counts(const Counts& c, bool json) {
  if (json) {
    fmt::print("{}\n", Json{{"documents", c.documents},
                            {"tokens", c.tokens},
                            {"bytes", c.bytes},
                            {"seconds", c.seconds}}
                           .dump());
    return;
  }
  fmt::print("{} tokens, {} bytes", with_commas(c.tokens), with_commas(c.bytes));
  if (c.tokens > 0)
    fmt::print(", {:.3f} bytes per token",
               static_cast<double>(c.bytes) / static_cast<double>(c.tokens));
  fmt::print("\n");
}

// --- Back. ---

template <class T>
std::vector<int32_t> raw_ids(std::string_view bytes, const std::string& name) {
  BEV_CHECK(bytes.size() % sizeof(T) == 0, Data,
            "{}: {} bytes are no whole number of ids of {} bytes", name, bytes.size(), sizeof(T));
  std::vector<int32_t> ids;
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T id;
    std::memcpy(&id, bytes.data() + at, sizeof(T));
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::vector<int32_t> text_ids(std::string_view text, const std::string& name) {
  constexpr std::string_view kBlanks = " \t\r\n,[]";
  std::vector<int32_t> ids;
  for (size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = text.find_first_not_of(kBlanks)) {
    text.remove_prefix(at);
    const std::string word(text.substr(0, text.find_first_of(kBlanks)));
    const auto id = parse_integer(word);
    BEV_CHECK(id && std::in_range<int32_t>(*id), Data, "{}: {} is no id", name, in_quotes(word));
    ids.push_back(static_cast<int32_t>(*id));
    text.remove_prefix(word.size());
  }
  return ids;
}

std::string input_of(const FlagValues& flags) {
  return flags.positional().empty() ? "-" : flags.positional().front();
}

}  // namespace

int tokenize(std::span<const std::string> args) {
  const auto flags = flags_for({.name = "tokenize",
                                .summary = "Turns a text into token ids. Without FILE, or with "
                                           "'-', the text is read from stdin.",
                                .flags = kTokenizeFlags,
                                .positional = "[FILE|-]",
                                .max_positional = 1},
                               args);
  if (!flags) return 0;
  const auto how = static_cast<Format>(flags->choice("--format", 0, kFormats));
  BEV_CHECK(how == Format::Count || !flags->has("--time"), Usage,
            "--time says how long counting took; legal: --format count --time");
  const auto documents = static_cast<DocumentBreak>(
      flags->choice("--documents", static_cast<size_t>(DocumentBreak::File), kDocumentBreakNames));
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(tokenizer_from_flags(*flags));
  const std::optional<int32_t> eod = tokenizer->eod_id();
  BEV_CHECK(eod || !flags->has("--append-eod"), Usage,
            "--append-eod: this tokenizer has no token that ends a document");

  const WholeInput input(input_of(*flags));
  Counts counts{.bytes = static_cast<int64_t>(input.text().size())};
  std::vector<int32_t> ids;
  const double start = seconds_now();
  const auto take = [&](std::string_view document) {
    ids.clear();
    tokenizer->encode(document, ids);
    if (flags->has("--append-eod")) ids.push_back(*eod);
    ++counts.documents;
    counts.tokens += static_cast<int64_t>(ids.size());
    write_document(ids, how, *tokenizer);
  };
  // A whole file is taken as it is, its last line end too: ids then say what every byte became.
  if (documents == DocumentBreak::File)
    take(input.text());
  else
    for_each_document(input.text(), documents, take);
  counts.seconds = seconds_now() - start;
  if (how == Format::Count) print_counts(counts, flags->has("--time"));
  return 0;
}

int detokenize(std::span<const std::string> args) {
  const auto flags = flags_for({.name = "detokenize",
                                .summary = "Turns token ids into text. Without FILE, or with '-', "
                                           "the ids are read from stdin.",
                                .flags = kBackFlags,
                                .positional = "[FILE|-]",
                                .max_positional = 1},
                               args);
  if (!flags) return 0;
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(tokenizer_from_flags(*flags));
  const WholeInput input(input_of(*flags));
  const std::string& name = input.name();
  const size_t how = flags->choice("--format", 0, kIdFormats);
  const std::vector<int32_t> ids = how == 2   ? raw_ids<uint16_t>(input.text(), name)
                                   : how == 3 ? raw_ids<int32_t>(input.text(), name)
                                              : text_ids(input.text(), name);
  for (const int32_t id : ids)
    BEV_CHECK(id >= 0 && id < tokenizer->vocab_size(), Data,
              "{}: id {} is not in the vocabulary, whose ids go from 0 to {}", name, id,
              tokenizer->vocab_size() - 1);
  const std::string text = tokenizer->decode(
      ids, flags->has("--skip-special") ? SpecialIds::LeaveOut : SpecialIds::Keep);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace bev::app
