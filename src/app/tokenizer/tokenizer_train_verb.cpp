// bevatron tokenizer train: text files to a vocabulary.
#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <thread>
#include <vector>

#include "app/cli/cli_flags.h"
#include "app/cli/progress_line.h"
#include "app/tokenizer/tokenizer_verbs.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "text/bpe/bpe_vocab.h"
#include "text/bpe/tokenizer_trainer.h"
#include "text/punkt/punkt_trainer.h"
#include "text/sentencepiece/sentencepiece_tokenizer.h"
#include "text/sentencepiece/sentencepiece_trainer.h"
#include "text/utf8.h"

namespace bev::app {

namespace {

namespace fs = std::filesystem;

enum class Type : uint8_t { Bpe, SentencePieceBpe, Unigram, WordPiece, Punkt };
constexpr std::array<std::string_view, 5> kTypes{"bpe", "sentencepiece-bpe", "unigram", "wordpiece",
                                                 "punkt"};

constexpr std::array<VerbFlag, 9> kTokenizerTrainFlags{{
    {"--type", "NAME",
     "bpe: byte-level, as GPT-2's; sentencepiece-bpe: as Llama 2's; unigram: as T5's; wordpiece: "
     "as BERT's; punkt: no tokens, but the parameters of NLTK's sentence splitter [default: bpe]"},
    {"--vocab-size", "N",
     "how many tokens, special ones included; fewer when the text is small; not for punkt"},
    {"--output", "NAME",
     "bpe: a folder for tokenizer.json, vocab.json and merges.txt; wordpiece: a folder for "
     "vocab.txt; punkt: a folder for the four files that preprocess --punkt reads; the others: "
     "NAME.model and NAME.vocab"},
    {"--min-count", "N", "bpe, wordpiece: rarer pairs are not merged [default: 2]"},
    {"--special", "TOKEN ...",
     "tokens that stand for no text; of bpe behind all others [default: bpe: <|endoftext|>], of "
     "wordpiece behind [PAD] [UNK] [CLS] [SEP] [MASK]"},
    {"--one-document", "", "bpe: words may reach across the end of a line"},
    {"--cased", "", "wordpiece: keep capital letters and accents"},
    {"--threads", "N", "[default: as many as the machine has]"},
    {"--json", "", "print JSON with stable keys instead of text"},
}};

constexpr VerbSpec kTokenizerTrainVerb{
    .name = "tokenizer train",
    .summary =
        "Learns a vocabulary from plain text files, one line at a time. The files it writes are "
        "those of Hugging Face's libraries, and of SentencePiece. Byte-level training needs memory "
        "for the different words of the text, the others for the whole text.",
    .flags = kTokenizerTrainFlags,
    .positional = "FILE ...",
    .min_positional = 1,
    .max_positional = SIZE_MAX};

struct Result {
  std::vector<std::string> files;
  int64_t tokens = 0;         // in the vocabulary
  int64_t bytes = 0;          // of text
  int64_t counted_bytes = 0;  // of these, and their tokens
  int64_t counted_tokens = 0;
  int64_t long_lines = 0, rare_characters = 0;  // that were left out
};

// Files that all appear, or none.
class Outputs {
 public:
  void add(const fs::path& path, std::string_view content) {
    AtomicFile& file = files_.emplace_back(path);
    file.write(content);
    names_.push_back(path.string());
  }
  std::vector<std::string> commit() {
    for (AtomicFile& file : files_) file.commit();
    return names_;
  }

 private:
  std::deque<AtomicFile> files_;
  std::vector<std::string> names_;
};

void make_folder(const fs::path& path) {
  if (path.empty()) return;
  std::error_code error;
  fs::create_directories(path, error);
  BEV_CHECK(!error && fs::is_directory(path), Data, "cannot make the folder {}: {}", path.string(),
            error ? error.message() : "something else has this name");
}

// Whoever loads the folder by name finds the class and the end of a document here.
std::string tokenizer_config(const std::vector<std::string>& specials) {
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
              {"clean_up_tokenization_spaces", false}};
  for (const std::string& special : specials)
    if (special == kEndOfText) config["eos_token"] = special;
  return config.dump(2) + "\n";
}

int64_t total_bytes(std::span<const std::string_view> texts) {
  int64_t bytes = 0;
  for (const std::string_view text : texts) bytes += static_cast<int64_t>(text.size());
  return bytes;
}

void refuse_flags(const FlagValues& flags, std::initializer_list<std::string_view> others) {
  const size_t type = flags.choice("--type", 0, kTypes);
  for (const std::string_view other : others)
    BEV_CHECK(!flags.has(other), Usage, "{} is nothing that --type {} knows", other, kTypes[type]);
}

int64_t vocab_of(const FlagValues& flags) {
  return flags.integer("--vocab-size", 0, 1, int64_t{1} << 24);
}

// Trains with a line for people on each of the two stages.
template <class Train>
auto with_progress(int64_t bytes, int64_t vocab, Train&& train) {
  ProgressLine counting("counting words", bytes, "bytes");
  ProgressLine merging("merging", vocab, "merges");
  const auto counted = [&](int64_t done) { counting.update(done); };
  const auto merged = [&](size_t merges) { merging.update(static_cast<int64_t>(merges)); };
  return train(TrainingProgress{.counted = counted, .merged = merged});
}

Result train_bytes(const FlagValues& flags, std::span<const std::string_view> texts, int threads) {
  refuse_flags(flags, {"--cased"});
  Result result;
  result.bytes = total_bytes(texts);
  const BpeTraining how{.vocab = vocab_of(flags),
                        .min_count = flags.integer("--min-count", 2, 1, INT64_MAX),
                        .specials = flags.has("--special")
                                        ? flags.texts("--special")
                                        : std::vector<std::string>{std::string(kEndOfText)},
                        .unit = flags.has("--one-document") ? TextUnit::Text : TextUnit::Line,
                        .threads = threads};
  const TrainedBpe trained = with_progress(result.bytes, how.vocab, [&](TrainingProgress progress) {
    return train_bpe(texts, how, progress);
  });
  const fs::path folder = flags.path("--output");
  make_folder(folder);
  Outputs outputs;
  outputs.add(folder / "vocab.json", vocab_json(trained));
  outputs.add(folder / "merges.txt", merges_txt(trained));
  outputs.add(folder / "tokenizer_config.json", tokenizer_config(trained.specials));
  outputs.add(folder / "tokenizer.json", tokenizer_json(trained));
  result.files = outputs.commit();
  result.tokens = static_cast<int64_t>(trained.tokens.size() + trained.specials.size());
  result.counted_bytes = result.bytes;
  result.counted_tokens = trained.text_tokens;
  return result;
}

Result train_words(const FlagValues& flags, std::span<const std::string_view> texts, int threads) {
  refuse_flags(flags, {"--one-document"});
  Result result;
  result.bytes = total_bytes(texts);
  const WordPieceTraining how{.vocab = vocab_of(flags),
                              .min_count = flags.integer("--min-count", 2, 1, INT64_MAX),
                              .specials = flags.texts("--special"),
                              .lower_case = !flags.has("--cased"),
                              .threads = threads};
  const TrainedWordPiece trained = with_progress(
      result.bytes, how.vocab,
      [&](TrainingProgress progress) { return train_wordpiece(texts, how, progress); });
  const fs::path folder = flags.path("--output");
  make_folder(folder);
  Outputs outputs;
  outputs.add(folder / "vocab.txt", vocab_txt(trained));
  result.files = outputs.commit();
  result.tokens = static_cast<int64_t>(trained.tokens.size());
  result.counted_bytes = result.bytes;
  result.counted_tokens = trained.text_tokens;
  result.rare_characters = trained.characters_left_out;
  return result;
}

// The first lines are enough to say how many bytes a token has.
void count_first_lines(std::span<const std::string_view> texts, Tokenizer& tokenizer,
                       Result& result) {
  constexpr int64_t kEnough = int64_t{4} << 20;
  std::vector<int32_t> ids;
  for (std::string_view rest : texts) {
    while (!rest.empty() && result.counted_bytes < kEnough) {
      const size_t newline = rest.find('\n');
      const std::string_view line = rest.substr(0, newline);
      rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
      ids.clear();
      tokenizer.encode(line, ids);
      result.counted_bytes += static_cast<int64_t>(line.size());
      result.counted_tokens += static_cast<int64_t>(ids.size());
    }
  }
}

Result train_pieces(const FlagValues& flags, SentencePieceStyle style,
                    std::span<const std::string_view> texts, int threads) {
  refuse_flags(flags, {"--min-count", "--one-document", "--cased"});
  Result result;
  result.bytes = total_bytes(texts);
  const TrainedSentencePiece trained =
      train_sentencepiece(texts, {.style = style,
                                  .vocab = vocab_of(flags),
                                  .specials = flags.texts("--special"),
                                  .threads = threads});
  const std::string prefix = flags.path("--output");
  make_folder(fs::path(prefix).parent_path());
  Outputs outputs;
  outputs.add(prefix + ".model", trained.model);
  outputs.add(prefix + ".vocab", sentencepiece_vocab(trained.model));
  SentencePieceTokenizer tokenizer(trained.model, prefix + ".model", SentencePieceRules::Plain, 0);
  count_first_lines(texts, tokenizer, result);
  result.files = outputs.commit();
  result.tokens = tokenizer.vocab_size();
  result.long_lines = trained.long_lines;
  return result;
}

// Each file is one text: words do not reach across its end.
int train_punkt(const FlagValues& flags, std::span<const MappedFile> files) {
  refuse_flags(flags, {"--vocab-size", "--min-count", "--special", "--one-document", "--cased",
                       "--threads"});
  const double start = seconds_now();
  PunktTrainer trainer;
  int64_t bytes = 0;
  for (const MappedFile& file : files) {
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    const size_t valid = valid_utf8_prefix(text);
    BEV_CHECK(valid == text.size(), Data, "{}: not valid UTF-8 at byte {}", file.path().string(),
              with_commas(static_cast<int64_t>(valid)));
    trainer.add(text);
    bytes += static_cast<int64_t>(text.size());
  }
  const PunktParameters found = trainer.finish();
  const fs::path folder = flags.path("--output");
  make_folder(folder);
  Outputs outputs;
  const PunktTexts texts = punkt_texts(found);
  for (size_t i = 0; i < texts.size(); ++i) outputs.add(folder / kPunktFiles[i], texts[i]);
  const std::vector<std::string> names = outputs.commit();
  const double seconds = seconds_now() - start;
  if (flags.has("--json")) {
    fmt::print("{}\n", Json{{"files", names},
                            {"words", trainer.words()},
                            {"bytes", bytes},
                            {"abbreviations", found.abbreviations.size()},
                            {"collocations", found.collocations.size()},
                            {"sentence_starters", found.sentence_starters.size()},
                            {"orthographic_contexts", found.ortho_context.size()},
                            {"seconds", seconds}}
                           .dump(2));
    return 0;
  }
  fmt::print(
      "{} abbreviations, {} collocations, {} sentence starters and {} orthographic contexts\n",
      found.abbreviations.size(), found.collocations.size(), found.sentence_starters.size(),
      with_commas(static_cast<int64_t>(found.ortho_context.size())));
  fmt::print("  {} bytes of text in {} ({:.0f} MB/s)\n", with_commas(bytes), as_duration(seconds),
             static_cast<double>(bytes) / 1e6 / seconds);
  for (const std::string& name : names) fmt::print("wrote {}\n", name);
  return 0;
}

void print_result(const Result& result, double seconds, bool json) {
  const double per_token =
      result.counted_tokens == 0
          ? 0.0
          : static_cast<double>(result.counted_bytes) / static_cast<double>(result.counted_tokens);
  if (json) {
    fmt::print("{}\n", Json{{"files", result.files},
                            {"tokens", result.tokens},
                            {"bytes", result.bytes},
                            {"bytes_per_token", per_token},
                            {"lines_left_out", result.long_lines},
                            {"characters_left_out", result.rare_characters},
                            {"seconds", seconds}}
                           .dump(2));
    return;
  }
  fmt::print("{} tokens from {} bytes of text in {} ({:.0f} MB/s)\n", with_commas(result.tokens),
             with_commas(result.bytes), as_duration(seconds),
             static_cast<double>(result.bytes) / 1e6 / seconds);
  fmt::print("  {:.3f} bytes per token on {}\n", per_token,
             result.counted_bytes == result.bytes ? "this text" : "its first lines");
  if (result.long_lines > 0)
    fmt::print("  {} lines were left out: longer than {} bytes\n", with_commas(result.long_lines),
               with_commas(static_cast<int64_t>(TrainedSentencePiece::kLongestLine)));
  if (result.rare_characters > 0)
    fmt::print("  {} characters were left out: the rarest\n", with_commas(result.rare_characters));
  for (const std::string& file : result.files) fmt::print("wrote {}\n", file);
}

}  // namespace

int tokenizer_train(std::span<const std::string> args) {
  const auto flags = flags_for(kTokenizerTrainVerb, args);
  if (!flags) return 0;
  const auto type = static_cast<Type>(flags->choice("--type", 0, kTypes));
  const bool has_size = flags->has("--vocab-size") || type == Type::Punkt;
  BEV_CHECK(has_size && flags->has("--output"), Usage,
            "{} is missing; `bevatron tokenizer train --vocab-size 8192 --output FOLDER FILE` is "
            "the least",
            has_size ? "--output" : "--vocab-size");
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const auto threads = static_cast<int>(flags->integer("--threads", cores, 1, 1024));
  const double start = seconds_now();
  std::vector<MappedFile> files;
  std::vector<std::string_view> texts;
  for (const std::string& path : flags->positional()) {
    const auto bytes = files.emplace_back(path).bytes();
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  BEV_CHECK(std::any_of(texts.begin(), texts.end(), [](auto text) { return !text.empty(); }), Data,
            "{}: there is no text to learn from", flags->positional().front());
  if (type == Type::Punkt) return train_punkt(*flags, files);
  const auto train = [&] {
    switch (type) {
      case Type::Bpe: return train_bytes(*flags, texts, threads);
      case Type::WordPiece: return train_words(*flags, texts, threads);
      case Type::Unigram: return train_pieces(*flags, SentencePieceStyle::Unigram, texts, threads);
      case Type::SentencePieceBpe:
      case Type::Punkt: break;
    }
    return train_pieces(*flags, SentencePieceStyle::Bpe, texts, threads);
  };
  const Result result = train();
  print_result(result, seconds_now() - start, flags->has("--json"));
  return 0;
}

}  // namespace bev::app
