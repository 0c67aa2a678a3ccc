#include "text/huggingface/token_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"
#include "base/json.h"
#include "text/bpe/bpe_merge.h"
#include "text/bpe/bpe_vocab.h"
#include "text/utf8.h"

namespace bev {

void TokenNames::add(std::string_view name, int64_t id, std::string_view source,
                     std::string_view path) {
  BEV_CHECK(id >= 0 && id < kLimit, Data, "{}: {}: the id of token {} is {}; ids are 0 to {}",
            source, path, in_quotes(name), id, kLimit - 1);
  const auto i = static_cast<size_t>(id);
  const auto [place, is_new] = ids_.emplace(name, static_cast<int32_t>(id));
  BEV_CHECK(is_new, Data, "{}: {}: the token {} is there twice, with ids {} and {}", source, path,
            in_quotes(name), place->second, id);
  if (i >= names_.size()) names_.resize(i + 1, nullptr);
  BEV_CHECK(names_[i] == nullptr, Data, "{}: {}: tokens {} and {} both have id {}", source, path,
            in_quotes(*names_[i]), in_quotes(name), id);
  names_[i] = &place->first;
}

std::optional<int32_t> TokenNames::find(std::string_view name) const {
  const auto known = ids_.find(name);
  if (known == ids_.end()) return std::nullopt;
  return known->second;
}

const std::string* TokenNames::name(int32_t id) const {
  if (id < 0 || id >= size()) return nullptr;
  return names_[static_cast<size_t>(id)];
}

BpeModel::BpeModel(TokenNames names, MergeTable merges, Options options, bool words_are_apart)
    : TokenModel(std::move(names)),
      merges_(std::move(merges)),
      options_(options),
      words_are_apart_(words_are_apart) {
  for (size_t c = 0; c < ascii_.size(); ++c)
    ascii_[c] = names_.find(std::string(1, static_cast<char>(c))).value_or(-1);
  if (options_.unit == Unit::Byte)
    for (int byte = 0; byte < 256; ++byte)
      bytes_.push_back(start_of(name_of_bytes(std::string(1, static_cast<char>(byte)))));
}

BpeModel::Start BpeModel::start_of(std::string_view name) const {
  if (const std::optional<int32_t> id = names_.find(name)) return {StartKind::Token, {*id}};
  if (options_.byte_fallback) {
    Start start{StartKind::Bytes, {}};
    for (const char byte : name)
      if (const auto id = names_.find(format("<0x{:02X}>", static_cast<unsigned char>(byte))))
        start.ids.push_back(*id);
    if (start.ids.size() == name.size()) return start;
  }
  if (options_.unknown) return {StartKind::Unknown, {}};
  return {};
}

// An unknown character is written only when a token or another unknown follows, or at the end, so
// that bytes come before the unknown in front of them. That is what the library does, and files
// without all 256 bytes were used with it.
void BpeModel::append(const Start& start, bool& unknown_due, std::vector<int32_t>& ids) const {
  const bool unknown = start.kind == StartKind::Unknown;
  if (unknown_due && (start.kind == StartKind::Token || (unknown && !options_.fuse_unknown))) {
    ids.push_back(*options_.unknown);
    unknown_due = false;
  }
  unknown_due = unknown_due || unknown;
  ids.insert(ids.end(), start.ids.begin(), start.ids.end());
}

void BpeModel::append_character(std::string_view character, bool& unknown_due,
                                std::vector<int32_t>& ids) const {
  const int32_t id = character.size() == 1 ? ascii_[static_cast<unsigned char>(character[0])] : -1;
  if (id >= 0 && !unknown_due) {
    ids.push_back(id);
  } else {
    append(start_of(character), unknown_due, ids);
  }
}

std::optional<int32_t> BpeModel::whole(std::string_view piece) const {
  if (options_.unit == Unit::Character) return names_.find(piece);
  return names_.find(name_of_bytes(piece));
}

void BpeModel::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  ids.clear();
  if (options_.ignore_merges) {
    if (const std::optional<int32_t> id = whole(piece)) return ids.push_back(*id);
  }
  bool unknown_due = false;
  if (options_.unit == Unit::Byte) {
    for (const char byte : piece)
      append(bytes_[static_cast<unsigned char>(byte)], unknown_due, ids);
  } else {
    for (size_t at = 0; at < piece.size();) {
      const size_t length = utf8_character(piece.data() + at).length;
      append_character(piece.substr(at, length), unknown_due, ids);
      at += length;
    }
  }
  if (unknown_due) ids.push_back(*options_.unknown);
  ids.resize(merge_tokens(merges_, ids));
}

namespace {

constexpr double kUnknownPenalty = 10.0;  // below the least score

ByteTrie name_trie(const TokenNames& names) {
  std::vector<std::pair<std::string, int32_t>> strings;
  for (int32_t id = 0; id < names.size(); ++id)
    if (!names.name(id)->empty()) strings.emplace_back(*names.name(id), id);
  return ByteTrie(std::move(strings));
}

// The best way to write the piece up to a byte.
struct Best {
  double score = 0.0;
  size_t begin = SIZE_MAX;  // of its last token; SIZE_MAX: no way leads here
  int32_t id = -1;
};

}  // namespace

UnigramModel::UnigramModel(TokenNames names, std::vector<double> scores, Options options,
                           std::string source)
    : TokenModel(std::move(names)),
      tokens_(name_trie(names_)),
      scores_(std::move(scores)),
      options_(options),
      source_(std::move(source)) {
  if (!scores_.empty())
    unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty;
}

void UnigramModel::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  std::vector<Best> best(piece.size() + 1);
  const auto offer = [&](size_t begin, size_t end, double score, int32_t id) {
    if (best[end].begin == SIZE_MAX || score > best[end].score) best[end] = {score, begin, id};
  };
  for (size_t at = 0; at < piece.size();) {
    const size_t length = utf8_character(piece.data() + at).length;
    const double before = best[at].score;
    bool has_character = false;
    tokens_.beginnings(piece.substr(at), [&](size_t token_length, int32_t id) {
      offer(at, at + token_length, before + scores_[static_cast<size_t>(id)], id);
      has_character = has_character || token_length == length;
    });
    if (!has_character) {
      BEV_CHECK(options_.unknown, Data,
                "{}: the vocabulary has no token for {}, and no unknown token", source_,
                in_quotes(piece.substr(at, length)));
      offer(at, at + length, before + unknown_score_, *options_.unknown);
    }
    at += length;
  }
  ids.clear();
  std::vector<std::pair<size_t, int32_t>> tokens;  // begin and id, the last first
  for (size_t end = piece.size(); end > 0; end = best[end].begin)
    tokens.emplace_back(best[end].begin, best[end].id);
  std::reverse(tokens.begin(), tokens.end());
  for (size_t i = 0; i < tokens.size();) {
    if (tokens[i].second != options_.unknown) {
      ids.push_back(tokens[i++].second);
      continue;
    }
    // Neighbours that are unknown are one.
    const size_t begin = tokens[i].first;
    while (i < tokens.size() && tokens[i].second == options_.unknown) ++i;
    append_unknown(
        piece.substr(begin, (i < tokens.size() ? tokens[i].first : piece.size()) - begin), ids);
  }
}

void UnigramModel::append_unknown(std::string_view part, std::vector<int32_t>& ids) const {
  // Several unknown characters may spell a token that no single step reached.
  if (const std::optional<int32_t> id = names_.find(part)) return ids.push_back(*id);
  if (options_.byte_fallback) {
    std::vector<int32_t> bytes;
    for (const char byte : part)
      if (const auto id = names_.find(format("<0x{:02X}>", static_cast<unsigned char>(byte))))
        bytes.push_back(*id);
    if (bytes.size() == part.size()) {
      ids.insert(ids.end(), bytes.begin(), bytes.end());
      return;
    }
  }
  ids.push_back(*options_.unknown);
}

namespace {

// The tokens whose names begin with the prefix, without it.
ByteTrie prefix_trie(const TokenNames& names, std::string_view prefix) {
  std::vector<std::pair<std::string, int32_t>> strings;
  for (int32_t id = 0; id < names.size(); ++id) {
    const std::string* name = names.name(id);
    if (name != nullptr && name->size() > prefix.size() && name->starts_with(prefix))
      strings.emplace_back(name->substr(prefix.size()), id);
  }
  return ByteTrie(std::move(strings));
}

}  // namespace

WordPieceModel::WordPieceModel(TokenNames names, Options options)
    : TokenModel(std::move(names)),
      begins_(prefix_trie(names_, "")),
      continues_(prefix_trie(names_, options.continuation)),
      options_(std::move(options)) {}

void WordPieceModel::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  ids.clear();
  const auto is_first_byte = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  const auto characters = std::count_if(piece.begin(), piece.end(), is_first_byte);
  bool known = static_cast<size_t>(characters) <= options_.longest_word;
  for (size_t at = 0; known && at < piece.size();) {
    size_t longest = 0;
    int32_t token = -1;
    const ByteTrie& tokens = at == 0 ? begins_ : continues_;
    tokens.beginnings(piece.substr(at), [&](size_t length, int32_t id) {
      longest = length;
      token = id;
    });
    known = longest > 0;
    if (known) ids.push_back(token);
    at += longest;
  }
  if (!known) ids.assign(1, options_.unknown);
}

}  // namespace bev
