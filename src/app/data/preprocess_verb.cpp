// bevatron preprocess: text files to token files, with the flags of Megatron-LM's
// preprocess_data.py.
#include <glob.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>

#include "app/cli/console.h"
#include "app/cli/progress_line.h"
#include "app/cli/shared_flags.h"
#include "app/cli/signals.h"
#include "app/cli/verbs.h"
#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "data/preprocess/preprocess.h"

namespace bev::app {

namespace {

constexpr auto kPreprocessFlags = with_tokenizer_flags(std::array<VerbFlag, 24>{{
    {"--input", "FILE ...",
     "jsonl or plain text, also compressed (gzip, xz, zstd); names with * and ? are expanded, '-' "
     "is stdin; documents keep this order"},
    {"--output-prefix", "PREFIX",
     "jsonl: PREFIX_KEY_document.bin and .idx for each key; plain text: PREFIX.bin and .idx"},
    {"--input-format", "NAME", "jsonl or text [default: what the first input looks like]"},
    {"--json-keys", "KEY ...", "jsonl: the keys whose texts are taken [default: text]"},
    {"--documents", "NAME", "plain text: line, paragraph or file is a document [default: line]"},
    {"--append-eod", "", "end every document with the end-of-document token"},
    {"--split-sentences", "", "every sentence is a sequence; names end with _sentence"},
    {"--keep-newlines", "",
     "with --split-sentences: white space stays with the sentence before it"},
    {"--punkt", "FOLDER",
     "with --split-sentences: NLTK's parameters (punkt_tab, or the folder of one language) "
     "[default: "
     "where NLTK keeps its data, else built-in rules for English]; none: the built-in rules"},
    {"--workers", "N", "threads that encode [default: all cores]; the files do not depend on it"},
    {"--partitions", "N",
     "write line i with partition i mod N, one partition after the other, as Megatron-LM does"},
    {"--keep-sequential-samples", "", "keep the order of the lines whatever --partitions says"},
    {"--max-rejected", "N",
     "lines that cannot be used (no JSON, no such key, no UTF-8 ...) are set aside in "
     "PREFIX.rejected.jsonl; more than N end the run [default: 100]"},
    {"--max-line-size", "SIZE", "longer lines are set aside [default: 64Mi]"},
    {"--json", "", "print JSON with stable keys"},
    {"--lang", "NAME", "with --split-sentences: language of the parameters [default: english]"},
    {"--vocab", "FILE", "Megatron's earlier name of --vocab-file"},
    {"--dataset-impl", "NAME", "the format of the files: mmap, the only one"},
    {"--log-interval", "N", "accepted, changes nothing"},
    {"--trust-remote-code", "", "accepted, changes nothing"},
    {"--tokenizer-hf-no-use-fast", "", "accepted, changes nothing"},
    {"--no-pad-vocab-size", "", "accepted, changes nothing"},
    {"--padded-vocab-size", "N", "accepted, changes nothing"},
    {"--null-tokenizer-pad-id", "ID", "accepted, changes nothing"},
}});

constexpr std::array<std::string_view, 2> kKinds{"jsonl", "text"};
constexpr std::array<std::string_view, 1> kDatasetFormats{"mmap"};

std::vector<std::string> expanded(const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::error_code ignored;
    if (name == "-" || name.find_first_of("*?[") == std::string::npos ||
        std::filesystem::exists(name, ignored)) {
      files.push_back(name);
      continue;
    }
    glob_t found{};
    const int code = ::glob(name.c_str(), 0, nullptr, &found);
    files.insert(files.end(), found.gl_pathv, found.gl_pathv + (code == 0 ? found.gl_pathc : 0));
    ::globfree(&found);
    BEV_CHECK(code == 0, Data, "--input {}: no file has such a name", in_quotes(name));
  }
  return files;
}

// By its name, else by its first character.
InputKind kind_of_input(const std::string& input) {
  if (input == "-") return InputKind::Jsonl;
  std::string name = std::filesystem::path(input).filename().string();
  for (const std::string_view ending : {".gz", ".xz", ".zst"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  if (name.ends_with(".jsonl") || name.ends_with(".json")) return InputKind::Jsonl;
  std::array<char, 4096> first;
  ByteSource source(input);
  const std::string_view text(first.data(), source.read(first));
  const size_t begin = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return begin != std::string_view::npos && text[begin] == '{' ? InputKind::Jsonl : InputKind::Text;
}

void check_prefix(const std::string& prefix) {
  const auto ending = std::filesystem::path(prefix).extension();
  // Whoever reads such a name takes the ending for that of the files.
  BEV_CHECK(ending != ".bin" && ending != ".idx", Usage,
            "--output-prefix {}: a name without {} is wanted, since .bin and .idx are added",
            prefix, ending.string());
}

void check_keys(const std::vector<std::string>& keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    BEV_CHECK(keys[i].find('/') == std::string::npos, Usage,
              "--json-keys {}: a key becomes part of a file name and cannot have a slash", keys[i]);
    BEV_CHECK(std::find(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(i), keys[i]) ==
                  keys.begin() + static_cast<ptrdiff_t>(i),
              Usage, "--json-keys {}: the key stands there twice", keys[i]);
  }
}

// The folder of a language; none: no parameters.
std::optional<std::filesystem::path> punkt_folder(const FlagValues& flags,
                                                  const std::string& language) {
  if (!flags.has("--punkt")) return find_punkt_folder(language);
  const std::string name = flags.path("--punkt");
  if (name == "none") return std::nullopt;
  const std::filesystem::path folder = name;
  std::error_code ignored;
  BEV_CHECK(std::filesystem::is_directory(folder, ignored), Data,
            "--punkt {}: no such folder\nexpected a punkt_tab folder of NLTK", name);
  return std::filesystem::is_directory(folder / language, ignored) ? folder / language : folder;
}

// Null: the built-in rules.
std::shared_ptr<const PunktParameters> punkt_from(const FlagValues& flags) {
  const std::string language = flags.text("--lang", "english");
  BEV_CHECK(is_plain_file_name(language), Usage,
            "invalid --lang {}\nexpected the name of a language, such as english",
            in_quotes(language));
  if (const auto folder = punkt_folder(flags, language))
    return std::make_shared<const PunktParameters>(read_punkt_folder(*folder));
  BEV_CHECK(language == "english", Usage,
            "--lang {}: no Punkt parameters found; the built-in rules are for English\n"
            "use --punkt FOLDER, or install NLTK's punkt_tab",
            language);
  if (!flags.has("--punkt"))
    print_stderr(
        "bevatron: note: no Punkt parameters found; sentences are split by built-in rules for "
        "English (--punkt FOLDER uses NLTK's)\n");
  return nullptr;
}

PreprocessOptions options_from(const FlagValues& flags) {
  PreprocessOptions o;
  const std::vector<std::string> inputs = flags.texts("--input");
  o.prefix = flags.path("--output-prefix");
  BEV_CHECK(!inputs.empty() && !o.prefix.empty(), Usage,
            "{} is missing; `bevatron preprocess --input FILE --output-prefix PREFIX "
            "--tokenizer-type byte` is the least",
            inputs.empty() ? "--input" : "--output-prefix");
  check_prefix(o.prefix.string());
  o.inputs = expanded(inputs);
  if (flags.has("--input-format"))
    o.kind = static_cast<InputKind>(flags.choice("--input-format", 0, kKinds));
  else
    o.kind = flags.has("--documents") ? InputKind::Text : kind_of_input(o.inputs.front());
  BEV_CHECK(o.kind == InputKind::Text || !flags.has("--documents"), Usage,
            "--documents is for plain text: a line of jsonl is a document");
  BEV_CHECK(o.kind == InputKind::Jsonl || !flags.has("--json-keys"), Usage,
            "--json-keys is for jsonl, and {} looks like plain text; legal: --input-format jsonl",
            o.inputs.front());
  BEV_CHECK(o.kind == InputKind::Jsonl || !flags.has("--partitions"), Usage,
            "--partitions deals the lines of jsonl; plain text keeps its order");
  if (flags.has("--json-keys")) o.keys = flags.texts("--json-keys");
  check_keys(o.keys);
  o.documents = static_cast<DocumentBreak>(
      flags.choice("--documents", static_cast<size_t>(DocumentBreak::Line), kDocumentBreakNames));
  flags.choice("--dataset-impl", 0, kDatasetFormats);
  o.append_eod = flags.has("--append-eod");
  o.split_sentences = flags.has("--split-sentences");
  o.keep_newlines = flags.has("--keep-newlines");
  flags.require_with("--keep-newlines", "--split-sentences");
  const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  o.workers = flags.integer("--workers", std::min<int64_t>(cores, 256), 1, 1024);
  o.partitions = flags.integer("--partitions", 1, 1, 1024);
  if (flags.has("--keep-sequential-samples")) o.partitions = 1;
  o.max_rejected = flags.integer("--max-rejected", o.max_rejected, 0, INT64_MAX);
  o.longest_line = flags.size("--max-line-size", o.longest_line, 1 << 10, int64_t{1} << 32);
  flags.require_with("--punkt", "--split-sentences");
  if (o.split_sentences) o.punkt = punkt_from(flags);
  return o;
}

int64_t bytes_of(const std::vector<std::string>& inputs) {
  int64_t bytes = 0;
  for (const std::string& input : inputs) {
    const int64_t size = size_of_input(input);
    if (size < 0) return -1;
    bytes += size;
  }
  return bytes;
}

void print_report(const PreprocessReport& report, double seconds, bool json) {
  const PreprocessCounts& c = report.counts;
  if (json) {
    Json files = Json::array();
    for (const PreprocessReport::File& file : report.files)
      files.push_back({{"prefix", file.prefix.string()},
                       {"documents", file.documents},
                       {"tokens", file.tokens}});
    Json out{{"files", files},    {"documents", c.documents}, {"tokens", c.tokens},
             {"bytes", c.bytes},  {"rejected", c.rejected},   {"blank_lines", c.blank_lines},
             {"seconds", seconds}};
    if (c.rejected > 0) out["rejected_file"] = report.rejected_path.string();
    fmt::print("{}\n", out.dump(2));
    return;
  }
  for (const PreprocessReport::File& file : report.files)
    fmt::print("{0}.bin, {0}.idx: {1} documents, {2} tokens\n", file.prefix.string(),
               with_commas(file.documents), with_commas(file.tokens));
  fmt::print("{} bytes of input in {:.1f} s, {:.1f} MB/s", with_commas(c.bytes), seconds,
             static_cast<double>(c.bytes) / 1e6 / seconds);
  if (c.blank_lines > 0) fmt::print("; {} blank lines left out", with_commas(c.blank_lines));
  fmt::print("\n");
}

void report_rejected(const PreprocessReport& report) {
  if (report.counts.rejected == 0) return;
  const int64_t count = report.counts.rejected;
  print_stderr("bevatron: note: {} line{} could not be used; see {}\n", with_commas(count),
               count == 1 ? "" : "s", report.rejected_path.string());
  for (const std::string& line : report.first_rejected) print_stderr("  {}\n", line);
}

}  // namespace

int preprocess(std::span<const std::string> args) {
  const auto flags =
      flags_for({.name = "preprocess",
                 .summary = "Turns text into the token files that train and eval read: .bin with "
                            "the ids and .idx with the index, the same bytes as Megatron-LM's.",
                 .flags = kPreprocessFlags},
                args);
  if (!flags) return 0;
  TokenizerSpec spec = tokenizer_from_flags(*flags);
  flags->require_not_both("--vocab", "--vocab-file");
  if (flags->has("--vocab")) spec.vocab_file = flags->path("--vocab");
  const PreprocessOptions options = options_from(*flags);
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(spec);
  BEV_CHECK(!options.append_eod || tokenizer->eod_id(), Usage,
            "--append-eod: this tokenizer has no token that ends a document");

  const StopSignal stop;
  ProgressLine progress("tokenizing", bytes_of(options.inputs), "bytes");
  const PreprocessReport report =
      preprocess(options, *tokenizer, [&](const PreprocessCounts& counts) {
        progress.update(counts.taken, [&] {
          const double rate = static_cast<double>(counts.documents) / progress.seconds();
          return format(", {} documents/s, {} tokens", with_commas(static_cast<int64_t>(rate)),
                        with_commas(counts.tokens));
        });
        return !stop.asked();
      });
  if (report.stopped) {
    print_stderr("bevatron: interrupted; no token file was written\n");
    return 130;
  }
  print_report(report, progress.seconds(), flags->has("--json"));
  report_rejected(report);
  return 0;
}

}  // namespace bev::app
