#include "text/huggingface/unigram_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "text/utf8.h"

namespace bev {

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

}  // namespace bev
