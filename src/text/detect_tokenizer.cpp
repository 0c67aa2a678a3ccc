#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "text/open_tokenizer.h"
#include "text/tokenizer_files.h"

namespace bev {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLookedFor =
    "tokenizer.json of Hugging Face, a .model file of SentencePiece, vocab.txt of BERT, vocab.json "
    "with merges.txt of GPT-2";
constexpr size_t kTokenizerFileLimit = size_t{256} << 20;

TokenizerSpec of_model(TokenizerKind kind, const fs::path& model) {
  TokenizerSpec spec;
  spec.kind = kind;
  spec.model = model.string();
  return spec;
}

TokenizerSpec of_vocab(TokenizerKind kind, const fs::path& vocab, const fs::path& merges = {}) {
  TokenizerSpec spec;
  spec.kind = kind;
  spec.vocab_file = vocab.string();
  spec.merge_file = merges.string();
  return spec;
}

// A message whose first field is a message, a piece, whose first field is a text that fits into it.
bool is_sentencepiece(std::string_view bytes) {
  const auto byte = [&](size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : size_t{0};
  };
  const bool two = byte(1) >= 0x80;  // bytes for the length
  const size_t length = two ? (byte(1) & 0x7F) + 128 * byte(2) : byte(1);
  const size_t inside = two ? 3 : 2;
  return byte(0) == '\n' && byte(inside) == '\n' && byte(inside + 1) + 2 <= length &&
         inside + length <= bytes.size();
}

std::optional<TokenizerSpec> as_json(const fs::path& path, std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return std::nullopt;
  const Json content = parse_json(text, path.string(), {.bytes = kTokenizerFileLimit, .depth = 64});
  if (content.contains("model") && content.at("model").is_object())
    return of_model(TokenizerKind::HuggingFace, path);
  const fs::path merges = path.parent_path() / "merges.txt";
  const bool is_vocab = std::all_of(content.begin(), content.end(),
                                    [](const Json& id) { return id.is_number_unsigned(); });
  if (!is_vocab || content.empty() || !fs::exists(merges)) return std::nullopt;
  return of_vocab(TokenizerKind::Gpt2, path, merges);
}

// A list of tokens with [UNK] among them. A tokenizer_config.json may add extra ids.
std::optional<TokenizerSpec> as_bert(const fs::path& path, std::string_view text) {
  bool has_unknown = false, has_capital = false;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    has_unknown = has_unknown || line == "[UNK]";
    // [CLS], [unused1] and the like are written so in every vocabulary.
    if (line.starts_with('[') && line.ends_with(']')) continue;
    has_capital = has_capital || std::any_of(line.begin(), line.end(),
                                             [](char c) { return c >= 'A' && c <= 'Z'; });
  }
  if (!has_unknown) return std::nullopt;
  TokenizerSpec spec =
      of_vocab(has_capital ? TokenizerKind::BertCased : TokenizerKind::BertLower, path);
  spec.extra_ids = extra_ids_in(path.parent_path());
  return spec;
}

std::optional<TokenizerSpec> of_file(const fs::path& path) {
  const std::string content = read_text(path, kTokenizerFileLimit);
  if (is_sentencepiece(content)) return of_model(TokenizerKind::SentencePiece, path);
  if (auto spec = as_json(path, content)) return spec;
  return as_bert(path, content);
}

std::vector<fs::path> candidates(const fs::path& folder) {
  std::vector<fs::path> models;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".model") models.push_back(entry.path());
  std::sort(models.begin(), models.end());
  std::vector<fs::path> all{folder / "tokenizer.json"};
  all.insert(all.end(), models.begin(), models.end());
  all.push_back(folder / "vocab.txt");
  all.push_back(folder / "vocab.json");
  return all;
}

}  // namespace

TokenizerSpec detect_tokenizer(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (auto spec = of_file(path)) return *spec;
    throw Error(ErrorKind::Data,
                format("{}: no tokenizer's file; looked for: {}", path, kLookedFor));
  }
  for (const fs::path& file : candidates(path))
    if (fs::exists(file))
      if (auto spec = of_file(file)) return *spec;
  throw Error(ErrorKind::Data,
              format("{}: no tokenizer in this folder; looked for: {}", path, kLookedFor));
}

}  // namespace bev
