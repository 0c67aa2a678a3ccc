#include "text/tokenizer_files.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/json.h"

namespace bev {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kVocabularies{
    "vocab.json", "merges.txt", "tokenizer.json", "tokenizer.model", "spiece.model", "vocab.txt"};
constexpr std::array<std::string_view, 5> kCompanions{
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
    "generation_config.json"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr const char* kExtraTokens = "additional_special_tokens";

std::string extra_token(int64_t index) { return format("<extra_id_{}>", index); }

std::string bert_tokenizer_config(const TokenizerSpec& spec) {
  Json config{{"tokenizer_class", "BertTokenizer"},
              {"do_lower_case", spec.kind != TokenizerKind::BertCased},
              {"unk_token", "[UNK]"},
              {"sep_token", "[SEP]"},
              {"pad_token", "[PAD]"},
              {"cls_token", "[CLS]"},
              {"mask_token", "[MASK]"}};
  // transformers gives them the ids after the vocabulary, in this order.
  Json& extra = config[kExtraTokens] = Json::array();
  if (spec.extra_ids > 0 && spec.classic) extra = {"[BOS]", "[EOS]"};
  for (int64_t i = 0; i < spec.extra_ids; ++i) extra.push_back(extra_token(i));
  if (extra.empty()) config.erase(kExtraTokens);
  return config.dump(2) + "\n";
}

}  // namespace

std::vector<TokenizerFile> tokenizer_files(const TokenizerSpec& spec) {
  std::vector<TokenizerFile> files;
  const auto add = [&](const fs::path& path, std::string_view name) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) files.push_back({path, std::string(name)});
  };
  std::error_code ignored;
  const fs::path model = spec.model;
  const bool folder = fs::is_directory(model, ignored);
  switch (spec.kind) {
    case TokenizerKind::Gpt2:
      add(spec.vocab_file, "vocab.json");
      add(spec.merge_file, "merges.txt");
      break;
    case TokenizerKind::HuggingFace:
      add(folder ? model / "tokenizer.json" : model, "tokenizer.json");
      add((folder ? model : model.parent_path()) / "tokenizer_config.json",
          "tokenizer_config.json");
      break;
    case TokenizerKind::BertLower:
    case TokenizerKind::BertCased:
      add(spec.vocab_file, "vocab.txt");
      if (files.empty()) break;
      add(fs::path(spec.vocab_file).parent_path() / "tokenizer_config.json",
          "tokenizer_config.json");
      if (files.size() == 1)
        files.push_back(
            {.path = {}, .name = "tokenizer_config.json", .text = bert_tokenizer_config(spec)});
      break;
    case TokenizerKind::SentencePiece:
    case TokenizerKind::GptSentencePiece:
    case TokenizerKind::Llama2: add(model, "tokenizer.model"); break;
    case TokenizerKind::None:
    case TokenizerKind::Byte:
    case TokenizerKind::Null:
    case TokenizerKind::External: break;
  }
  return files;
}

int64_t extra_ids_in(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return 0;
  const Json config = read_json(path);
  const auto found = config.is_object() ? config.find(kExtraTokens) : config.end();
  if (found == config.end() || !found->is_array()) return 0;
  int64_t count = 0;
  for (const Json& token : *found) {
    if (token != extra_token(count)) return 0;
    ++count;
  }
  return count;
}

bool is_tokenizer_file(std::string_view name) {
  return contains(kVocabularies, name) || contains(kCompanions, name);
}

bool holds_vocabulary(const fs::path& folder) {
  return std::any_of(kVocabularies.begin(), kVocabularies.end(), [&](std::string_view name) {
    std::error_code ignored;
    return fs::is_regular_file(folder / name, ignored);
  });
}

TokenizerSpec tokenizer_in_folder(TokenizerSpec spec, const fs::path& folder) {
  const auto use = [&](std::string& path, std::string_view name) {
    std::error_code ignored;
    if (const fs::path here = folder / name; fs::is_regular_file(here, ignored))
      path = here.string();
  };
  switch (spec.kind) {
    case TokenizerKind::Gpt2:
      use(spec.vocab_file, "vocab.json");
      use(spec.merge_file, "merges.txt");
      break;
    case TokenizerKind::HuggingFace: use(spec.model, "tokenizer.json"); break;
    case TokenizerKind::BertLower:
    case TokenizerKind::BertCased: use(spec.vocab_file, "vocab.txt"); break;
    case TokenizerKind::SentencePiece:
    case TokenizerKind::GptSentencePiece:
    case TokenizerKind::Llama2: use(spec.model, "tokenizer.model"); break;
    case TokenizerKind::None:
    case TokenizerKind::Byte:
    case TokenizerKind::Null:
    case TokenizerKind::External: break;
  }
  return spec;
}

}  // namespace bev
