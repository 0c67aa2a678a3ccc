// Byte-level vocabularies trained here, against those that tokenizers trained on the same texts.
#include <array>
#include <vector>

#include "base/check.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/json.h"
#include "golden_runner/cases.h"
#include "text/bpe/bpe_vocab.h"
#include "text/bpe/tokenizer_trainer.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Names = std::vector<std::string>;
using NamePairs = std::vector<std::array<std::string, 2>>;

TrainedBpe train(std::span<const std::string_view> texts, const BpeTraining& how) {
  return train_bpe(texts, how, {.counted = [](int64_t) {}, .merged = [](size_t) {}});
}

void check(const std::string& name, bool right, Report& report) {
  report.check(name, kHost, right ? 0 : 1, 0);
}

NamePairs merges_of(const TrainedBpe& trained) {
  NamePairs pairs;
  for (const SymbolPair& pair : trained.merges)
    pairs.push_back({name_of_bytes(trained.tokens.at(static_cast<size_t>(pair.left))),
                     name_of_bytes(trained.tokens.at(static_cast<size_t>(pair.right)))});
  return pairs;
}

// A merge is written as a pair or, in older files, as a string with a blank.
NamePairs merges_of(const Json& merges) {
  NamePairs pairs;
  for (const Json& each : merges) {
    if (each.is_array()) {
      pairs.push_back({each.at(0).get<std::string>(), each.at(1).get<std::string>()});
    } else {
      const auto text = each.get<std::string>();
      const size_t blank = text.find(' ');
      pairs.push_back({text.substr(0, blank), text.substr(blank + 1)});
    }
  }
  return pairs;
}

void run_corpus(const fs::path& dir, const fs::path& data, const Json& cases,
                const std::string& name, Report& report) {
  const Json& corpus = cases.at("corpus");
  const fs::path path = data / corpus.at("name").get<std::string>();
  if (data.empty() || !fs::exists(path)) {
    report.skip(name, "the text it was trained on is not here");
    return;
  }
  const std::string text = read_text(path);
  if (corpus.at("sha256") != sha256(std::as_bytes(std::span(text)))) {
    report.skip(name, "the text here is not the one it was trained on");
    return;
  }
  const std::vector<std::string_view> texts{text};
  BpeTraining how{.vocab = cases.at("vocab_size").get<int64_t>(),
                  .min_count = cases.at("min_frequency").get<int64_t>(),
                  .threads = 2};
  const TrainedBpe trained = train(texts, how);
  check(name + "/merges.txt: trained", merges_txt(trained) == read_text(dir / "merges.txt"),
        report);
  check(name + "/vocab.json: trained",
        parse_json(vocab_json(trained), "vocab.json") == read_json(dir / "vocab.json"), report);
  if (fs::exists(dir / "tokenizer.json")) {
    const Json ours = parse_json(tokenizer_json(trained), "tokenizer.json");
    Json theirs = read_json(dir / "tokenizer.json");
    theirs.at("model").at("merges") = merges_of(theirs.at("model").at("merges"));
    check(name + "/tokenizer.json: trained", ours == theirs, report);
  }
  if (fs::exists(dir / "merges_one_document.txt")) {
    how.unit = TextUnit::Text;
    check(name + "/merges_one_document.txt: trained",
          merges_txt(train(texts, how)) == read_text(dir / "merges_one_document.txt"), report);
  }
}

void run_small(const Json& corpora, const std::string& name, Report& report) {
  for (size_t i = 0; i < corpora.size(); ++i) {
    const Json& corpus = corpora[i];
    const auto documents = corpus.at("documents").get<Names>();
    const TrainedBpe trained =
        train(std::vector<std::string_view>(documents.begin(), documents.end()),
              {.vocab = corpus.at("vocab_size").get<int64_t>(),
               .min_count = corpus.at("min_frequency").get<int64_t>(),
               .unit = TextUnit::Text});
    Names tokens;
    for (size_t id = 256; id < trained.tokens.size(); ++id)
      tokens.push_back(name_of_bytes(trained.tokens[id]));
    check(format("{} corpus {}", name, i),
          merges_of(trained) == merges_of(corpus.at("merges")) &&
              tokens == corpus.at("tokens").get<Names>(),
          report);
  }
}

}  // namespace

void run_bpe_training(const fs::path& dir, const fs::path& data, const std::string& name,
                      Report& report) {
  const Json cases = read_json(dir / "cases.json");
  if (cases.contains("corpus")) run_corpus(dir, data, cases, name, report);
  if (fs::exists(dir / "small.json"))
    run_small(read_json(dir / "small.json").at("corpora"), name + "/small.json", report);
}

}  // namespace bev::golden
