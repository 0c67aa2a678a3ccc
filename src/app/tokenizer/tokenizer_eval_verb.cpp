// bevatron tokenizer eval: how well a vocabulary fits texts.
#include <array>
#include <cstdio>
#include <vector>

#include "app/cli/progress_line.h"
#include "app/cli/shared_flags.h"
#include "app/tokenizer/tokenizer_verbs.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "data/preprocess/text_reader.h"

namespace bev::app {

namespace {

constexpr auto kTokenizerEvalFlags = with_tokenizer_flags(std::array<VerbFlag, 2>{{
    {"--documents", "NAME", "line, paragraph or file: what is encoded by itself [default: line]"},
    {"--json", "", "print JSON with stable keys instead of text"},
}});

struct Fit {
  int64_t documents = 0, bytes = 0, words = 0, tokens = 0, unused = 0, unknown = 0, vocab = 0;
  double seconds = 0;  // of encoding alone

  static double ratio(int64_t a, int64_t b) {
    return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
  }
  double bytes_per_token() const { return ratio(bytes, tokens); }
  double tokens_per_word() const { return ratio(tokens, words); }
  double speed() const { return seconds > 0 ? static_cast<double>(bytes) / 1e6 / seconds : 0.0; }
};

// What stands between white space.
int64_t words_of(std::string_view text) {
  int64_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool blank = c == ' ' || (c >= '\t' && c <= '\r');
    words += !blank && !inside ? 1 : 0;
    inside = !blank;
  }
  return words;
}

Fit measure(const std::vector<std::string>& paths, DocumentBreak documents, Tokenizer& tokenizer) {
  std::vector<MappedFile> files;
  int64_t total = 0;
  for (const std::string& path : paths)
    total += static_cast<int64_t>(files.emplace_back(path).bytes().size());
  Fit fit;
  fit.vocab = tokenizer.vocab_size();
  std::vector<bool> used(static_cast<size_t>(fit.vocab), false);
  const std::optional<int32_t> unknown = tokenizer.role_id(TokenRole::Unknown);
  ProgressLine progress("encoding", total, "bytes");
  std::vector<int32_t> ids;
  for (const MappedFile& file : files) {
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    for_each_document(text, documents, [&](std::string_view document) {
      ids.clear();
      const double start = seconds_now();
      tokenizer.encode(document, ids);
      fit.seconds += seconds_now() - start;
      ++fit.documents;
      fit.bytes += static_cast<int64_t>(document.size());
      fit.words += words_of(document);
      fit.tokens += static_cast<int64_t>(ids.size());
      for (const int32_t id : ids) {
        used[static_cast<size_t>(id)] = true;
        fit.unknown += unknown == id ? 1 : 0;
      }
      progress.update(fit.bytes);
    });
  }
  for (const bool each : used) fit.unused += each ? 0 : 1;
  return fit;
}

void print_fit(const Fit& fit, bool json) {
  if (json) {
    fmt::print("{}\n", Json{{"documents", fit.documents},
                            {"bytes", fit.bytes},
                            {"words", fit.words},
                            {"tokens", fit.tokens},
                            {"bytes_per_token", fit.bytes_per_token()},
                            {"tokens_per_word", fit.tokens_per_word()},
                            {"unknown", fit.unknown},
                            {"vocabulary", fit.vocab},
                            {"never_used", fit.unused},
                            {"seconds", fit.seconds},
                            {"mb_per_second", fit.speed()}}
                           .dump(2));
    return;
  }
  fmt::print("{} tokens of {} bytes in {} documents\n", with_commas(fit.tokens),
             with_commas(fit.bytes), with_commas(fit.documents));
  fmt::print("  {:.3f} bytes per token, {:.3f} tokens per word\n", fit.bytes_per_token(),
             fit.tokens_per_word());
  if (fit.unknown > 0) fmt::print("  {} tokens are unknown\n", with_commas(fit.unknown));
  fmt::print("  {} of {} tokens of the vocabulary are never used\n", with_commas(fit.unused),
             with_commas(fit.vocab));
  fmt::print("  encoded at {:.1f} MB/s on one thread\n", fit.speed());
}

}  // namespace

int tokenizer_eval(std::span<const std::string> args) {
  const auto flags =
      flags_for({.name = "tokenizer eval",
                 .summary = "Says how well a vocabulary fits texts. A word is what stands between "
                            "white space; ends of lines between documents do not count.",
                 .flags = kTokenizerEvalFlags,
                 .positional = "FILE ...",
                 .min_positional = 1,
                 .max_positional = SIZE_MAX},
                args);
  if (!flags) return 0;
  const auto documents = static_cast<DocumentBreak>(
      flags->choice("--documents", static_cast<size_t>(DocumentBreak::Line), kDocumentBreakNames));
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(tokenizer_from_flags(*flags));
  const Fit fit = measure(flags->positional(), documents, *tokenizer);
  BEV_CHECK(fit.bytes > 0, Data, "{}: there is no text to encode", flags->positional().front());
  print_fit(fit, flags->has("--json"));
  return 0;
}

}  // namespace bev::app
