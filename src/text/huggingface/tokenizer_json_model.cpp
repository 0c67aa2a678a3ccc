// The section "model".
#include "base/check.h"
#include "text/bpe/bpe_vocab.h"
#include "text/huggingface/token_model.h"
#include "text/huggingface/tokenizer_json.h"

namespace bev {

namespace {

TokenNames read_names(const JsonCursor& vocab) {
  vocab.expect_object();
  TokenNames names;
  for (const auto& [name, id] : vocab.value().items()) {
    BEV_CHECK(id.is_number_integer(), Data, "{}: the id of token {} is no integer", vocab.where(),
              in_quotes(name));
    names.add(name, JsonCursor(id, vocab.file(), vocab.path()).integer(), vocab.file(),
              vocab.path());
  }
  return names;
}

// A text that must be missing or empty: what it would mean is not done.
void expect_empty(const JsonCursor& section, const std::string& key) {
  if (section.has(key) && !section.get(key).string().empty())
    section.get(key).refuse("null or an empty text");
}

struct Pair {
  std::string left, right;
};

// "a b", or ["a", "b"].
Pair read_pair(const JsonCursor& cursor) {
  if (cursor.value().is_array()) {
    if (cursor.size() != 2) cursor.refuse("two tokens");
    return {cursor.at(size_t{0}).string(), cursor.at(size_t{1}).string()};
  }
  const std::string text = cursor.string();
  const size_t blank = text.find(' ');
  if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos)
    cursor.refuse("two tokens with a blank between them");
  return {text.substr(0, blank), text.substr(blank + 1)};
}

struct Merges {
  MergeTable table;
  bool words_are_apart;  // no token has U+2581 behind another character
};

bool has_mark_inside(std::string_view name) {
  static constexpr std::string_view kWordMark = "\u2581";
  while (name.starts_with(kWordMark)) name.remove_prefix(kWordMark.size());
  return name.find(kWordMark) != std::string_view::npos;
}

Merges read_merges(const JsonCursor& list, const TokenNames& names) {
  const size_t count = list.size();
  BEV_CHECK(count <= static_cast<size_t>(TokenNames::kLimit), Data,
            "{}: {} merges; at most {} are read", list.where(), count, TokenNames::kLimit);
  Merges merges{MergeTable(count), true};
  for (size_t i = 0; i < count; ++i) {
    const JsonCursor cursor = list.at(i);
    const Pair pair = read_pair(cursor);
    const auto id_of = [&](const std::string& name, const char* which) {
      const std::optional<int32_t> id = names.find(name);
      BEV_CHECK(id, Data, "{}: the {} token {} is not in the vocabulary", cursor.where(), which,
                in_quotes(name));
      return *id;
    };
    const int32_t left = id_of(pair.left, "left"), right = id_of(pair.right, "right");
    const std::string merged = pair.left + pair.right;
    const Merge merge = make_merge(static_cast<uint32_t>(i), id_of(merged, "merged"));
    BEV_CHECK(merges.table.insert(left, right, merge), Data, "{}: {} and {} were merged before",
              cursor.where(), in_quotes(pair.left), in_quotes(pair.right));
    merges.words_are_apart = merges.words_are_apart && !has_mark_inside(merged);
  }
  return merges;
}

bool has_all_bytes(const TokenNames& names) {
  for (int byte = 0; byte < 256; ++byte)
    if (!names.find(name_of_bytes(std::string(1, static_cast<char>(byte))))) return false;
  return true;
}

// The token for what is unknown; none where the file names none, or one that can never be needed.
std::optional<int32_t> read_unknown(const JsonCursor& section, const TokenNames& names,
                                    bool needed) {
  if (!section.has("unk_token")) return std::nullopt;
  const std::optional<int32_t> id = names.find(section.get("unk_token").string());
  if (!id && needed) section.get("unk_token").refuse("a token of the vocabulary");
  return id;
}

std::shared_ptr<const TokenModel> read_bpe(const JsonCursor& section, bool bytes) {
  expect_empty(section, "continuing_subword_prefix");
  expect_empty(section, "end_of_word_suffix");
  if (section.has("dropout") && section.get("dropout").number() != 0.0)
    section.get("dropout").refuse("null or 0");
  TokenNames names = read_names(section.at("vocab"));
  Merges merges = read_merges(section.at("merges"), names);
  const BpeModel::Options options{
      .unit = bytes ? BpeModel::Unit::Byte : BpeModel::Unit::Character,
      .unknown = read_unknown(section, names, !bytes || !has_all_bytes(names)),
      .fuse_unknown = section.boolean_or("fuse_unk", false),
      .byte_fallback = section.boolean_or("byte_fallback", false),
      .ignore_merges = section.boolean_or("ignore_merges", false)};
  const bool apart = merges.words_are_apart && !bytes && !options.ignore_merges &&
                     names.find("\u2581").has_value();
  return std::make_shared<const BpeModel>(std::move(names), std::move(merges.table), options,
                                          apart);
}

std::shared_ptr<const TokenModel> read_unigram(const JsonCursor& section) {
  const JsonCursor vocab = section.at("vocab");
  TokenNames names;
  std::vector<double> scores;
  for (size_t i = 0; i < vocab.size(); ++i) {
    const JsonCursor entry = vocab.at(i);
    if (entry.size() != 2) entry.refuse("a token and its score");
    names.add(entry.at(size_t{0}).string(), static_cast<int64_t>(i), vocab.file(), entry.path());
    scores.push_back(entry.at(size_t{1}).number());
  }
  UnigramModel::Options options{.unknown = std::nullopt,
                                .byte_fallback = section.boolean_or("byte_fallback", false)};
  if (section.has("unk_id")) {
    const int64_t unknown = section.get("unk_id").integer();
    if (unknown < 0 || unknown >= names.size())
      section.get("unk_id").refuse("the place of a token in the vocabulary");
    options.unknown = static_cast<int32_t>(unknown);
  }
  return std::make_shared<const UnigramModel>(std::move(names), std::move(scores), options,
                                              vocab.where());
}

std::shared_ptr<const TokenModel> read_wordpiece(const JsonCursor& section) {
  TokenNames names = read_names(section.at("vocab"));
  const std::optional<int32_t> unknown = names.find(section.at("unk_token").string());
  if (!unknown) section.get("unk_token").refuse("a token of the vocabulary");
  const int64_t longest = section.has("max_input_chars_per_word")
                              ? section.get("max_input_chars_per_word").integer()
                              : 100;
  if (longest < 0) section.get("max_input_chars_per_word").refuse("a number of characters");
  const std::string continuation = section.has("continuing_subword_prefix")
                                       ? section.get("continuing_subword_prefix").string()
                                       : "##";
  return std::make_shared<const WordPieceModel>(
      std::move(names), WordPieceModel::Options{.unknown = *unknown,
                                                .continuation = continuation,
                                                .longest_word = static_cast<size_t>(longest)});
}

// Older files do not say what the model is.
std::string model_type(const JsonCursor& section) {
  if (section.has("type")) return section.get("type").string();
  if (section.has("merges")) return "BPE";
  if (section.has("vocab") && section.get("vocab").value().is_array()) return "Unigram";
  if (section.has("max_input_chars_per_word")) return "WordPiece";
  return type_of(section);
}

}  // namespace

std::shared_ptr<const TokenModel> read_model(const JsonCursor& section, bool bytes) {
  section.expect_object();
  const std::string type = model_type(section);
  if (type == "BPE") return read_bpe(section, bytes);
  // Bytes as characters of other models are left out until a file with them is seen.
  if (bytes) section.get("type").refuse("BPE, with ByteLevel");
  if (type == "Unigram") return read_unigram(section);
  if (type == "WordPiece") return read_wordpiece(section);
  section.get("type").refuse("BPE, Unigram, WordPiece");
}

}  // namespace bev
