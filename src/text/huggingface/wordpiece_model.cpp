#include "text/huggingface/wordpiece_model.h"

#include <algorithm>

namespace bev {

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
