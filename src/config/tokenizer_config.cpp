#include "config/tokenizer_config.h"

#include <filesystem>

#include "base/check.h"
#include "base/json.h"
#include "config/parse/notation.h"
#include "text/bpe/bpe_vocab.h"
#include "text/tokenizer.h"

namespace bev {

namespace {

constexpr int64_t kGpt2Vocab = 50257;

class FactFinder {
 public:
  FactFinder(LoadedConfig& loaded, Findings& findings) : loaded_(loaded), findings_(findings) {}

  void apply() {
    const int64_t vocab = loaded_.config.model.vocab;
    switch (loaded_.config.data.tokenizer) {
      case TokenizerKind::None:
      case TokenizerKind::External: return;
      case TokenizerKind::Byte: return facts(kByteVocab, kByteEod, "tokenizer byte");
      case TokenizerKind::Gpt2: return gpt2();
      case TokenizerKind::Null:
        if (vocab <= 0) return;
        if (loaded_.config.train.compat == Compat::Main)
          return facts(vocab, vocab - 1, "tokenizer null");
        // There the number given does not count the end of a document.
        set("model.vocab", vocab + 1, "tokenizer null, compat classic");
        facts(vocab + 1, vocab, "tokenizer null, compat classic");
        set("data.tokenizer", Choice{static_cast<size_t>(TokenizerKind::External)},
            "tokenizer null, compat classic");
        return;
      case TokenizerKind::BertLower:
      case TokenizerKind::BertCased:
        return read("data.vocab_file", loaded_.config.data.vocab_file, "a vocab.txt of BERT");
      case TokenizerKind::HuggingFace:
        return read("data.tokenizer_model", loaded_.config.data.tokenizer_model,
                    "a tokenizer.json of Hugging Face, or the folder that holds it");
      case TokenizerKind::SentencePiece:
      case TokenizerKind::GptSentencePiece:
      case TokenizerKind::Llama2:
        return read("data.tokenizer_model", loaded_.config.data.tokenizer_model,
                    "a .model file of SentencePiece");
    }
  }

 private:
  void set(std::string_view path, const Value& value, const std::string& why) {
    set_value(loaded_.config, path, value);
    loaded_.origins[std::string(path)] = {.kind = OriginKind::Default, .text = why};
  }

  void facts(int64_t vocab, int64_t eod, const std::string& why) {
    if (loaded_.config.model.vocab <= 0) set("model.vocab", vocab, why);
    // A smaller model than the tokenizer has ids has no end of a document.
    if (loaded_.config.data.eod < 0 && eod < loaded_.config.model.vocab) set("data.eod", eod, why);
  }

  // Without a file nothing is known, and model.vocab must be given. Training then needs no more.
  void read(std::string_view field, const std::string& file, std::string_view legal) {
    if (file.empty() || is_not_needed(field, file)) return;
    try {
      const auto tokenizer = open_tokenizer(tokenizer_spec(loaded_.config));
      facts(tokenizer->vocab_size(), tokenizer->eod_id().value_or(-1), file);
    } catch (const Error& error) {
      unreadable(field, file, error, legal);
    }
  }

  bool is_not_needed(std::string_view field, const std::string& file) {
    std::error_code ignored;
    if (loaded_.config.model.vocab <= 0 || std::filesystem::exists(file, ignored)) return false;
    loaded_.notes.push_back(format("{} = {} is not here; model.vocab is as given", field, file));
    return true;
  }

  void unreadable(std::string_view field, const std::string& file, const Error& error,
                  std::string_view legal) {
    findings_.problems.push_back({.what = "the vocabulary cannot be read",
                                  .where = format("{} = {}", field, toml_string(file)),
                                  .why = error.what(),
                                  .legal = std::string(legal)});
    findings_.doubtful.insert("model.vocab");
  }

  void gpt2() {
    const std::string& file = loaded_.config.data.vocab_file;
    if (file.empty()) return facts(kGpt2Vocab, kGpt2Vocab - 1, "tokenizer gpt2");
    if (is_not_needed("data.vocab_file", file)) return;
    try {
      const Json vocab = read_json(file);
      BEV_CHECK(vocab.is_object() && !vocab.empty(), Data,
                "{}: the vocabulary is not an object of tokens and their ids", file);
      const auto end = vocab.find(std::string(kEndOfText));
      const bool has_end = end != vocab.end() && end->is_number_integer();
      facts(static_cast<int64_t>(vocab.size()), has_end ? end->get<int64_t>() : -1, file);
    } catch (const Error& error) {
      unreadable("data.vocab_file", file, error, "the vocab.json of a GPT-2 tokenizer");
    }
  }

  LoadedConfig& loaded_;
  Findings& findings_;
};

}  // namespace

void apply_tokenizer(LoadedConfig& loaded, Findings& findings) {
  FactFinder(loaded, findings).apply();
}

TokenizerSpec tokenizer_spec(const Config& config) {
  const DataConfig& d = config.data;
  return {.kind = d.tokenizer,
          .vocab_file = d.vocab_file,
          .merge_file = d.merge_file,
          .model = d.tokenizer_model,
          .vocab = config.model.vocab,
          .eod = d.eod,
          .extra_ids = d.vocab_extra_ids,
          .classic = config.train.compat == Compat::Classic,
          .add_template = d.tokenizer_template};
}

std::unique_ptr<Tokenizer> tokenizer_of(const Config& config) {
  const DataConfig& d = config.data;
  const bool has_files = !d.vocab_file.empty() || !d.tokenizer_model.empty();
  switch (d.tokenizer) {
    case TokenizerKind::None:
    case TokenizerKind::External: return nullptr;
    case TokenizerKind::Byte:
    case TokenizerKind::Null: return open_tokenizer(tokenizer_spec(config));
    default: return has_files ? open_tokenizer(tokenizer_spec(config)) : nullptr;
  }
}

}  // namespace bev
