#include "config/tokenizer_facts.h"

#include "base/check.h"
#include "base/json.h"

namespace bev {

namespace {

constexpr int64_t kGpt2Vocab = 50257;
constexpr std::string_view kEndOfText = "<|endoftext|>";

class Tokenizer {
 public:
  Tokenizer(LoadedConfig& loaded, Findings& findings) : loaded_(loaded), findings_(findings) {}

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

  void gpt2() {
    const std::string& file = loaded_.config.data.vocab_file;
    if (file.empty()) return facts(kGpt2Vocab, kGpt2Vocab - 1, "tokenizer gpt2");
    try {
      const Json vocab = read_json(file);
      BEV_CHECK(vocab.is_object() && !vocab.empty(), Data,
                "{}: the vocabulary is not an object of tokens and their ids", file);
      const auto end = vocab.find(std::string(kEndOfText));
      const bool has_end = end != vocab.end() && end->is_number_integer();
      facts(static_cast<int64_t>(vocab.size()), has_end ? end->get<int64_t>() : -1, file);
    } catch (const Error& error) {
      findings_.problems.push_back({.what = "the vocabulary cannot be read",
                                    .where = format("data.vocab_file = {}", toml_string(file)),
                                    .why = error.what(),
                                    .legal = "the vocab.json of a GPT-2 tokenizer"});
      findings_.doubtful.insert("model.vocab");
    }
  }

  LoadedConfig& loaded_;
  Findings& findings_;
};

}  // namespace

void apply_tokenizer(LoadedConfig& loaded, Findings& findings) {
  Tokenizer(loaded, findings).apply();
}

}  // namespace bev
