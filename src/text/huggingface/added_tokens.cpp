#include "text/huggingface/added_tokens.h"

#include <algorithm>
#include <set>

#include "text/unicode/unicode.h"
#include "text/utf8.h"

namespace bev {

namespace {

ByteTrie pattern_trie(const std::vector<std::string>& patterns) {
  std::vector<std::pair<std::string, int32_t>> strings;
  std::set<std::string_view> seen;
  for (size_t i = 0; i < patterns.size(); ++i)
    if (!patterns[i].empty() && seen.insert(patterns[i]).second)
      strings.emplace_back(patterns[i], static_cast<int32_t>(i));
  return ByteTrie(std::move(strings));
}

// Where the character begins that ends before `end`. REQUIRES: end > 0.
size_t character_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

bool is_space(std::string_view text, size_t at) {
  return UnicodeClasses::table().of(utf8_character(text.data() + at).code) == CharClass::Space;
}

bool is_word(std::string_view text, size_t at) {
  return CharFlags::table().has(utf8_character(text.data() + at).code, kWord);
}

}  // namespace

TokenFinder::TokenFinder(const std::vector<AddedToken>& tokens,
                         const std::vector<std::string>& patterns)
    : tokens_(tokens), trie_(pattern_trie(patterns)) {
  for (int byte = 0; byte < 256; ++byte) {
    if (!trie_.begins(static_cast<char>(byte))) continue;
    if (only_first_ >= 0) {
      only_first_ = -1;
      break;
    }
    only_first_ = byte;
  }
}

bool TokenFinder::is_separate_word(std::string_view text, size_t begin, size_t end) const {
  return (begin == 0 || !is_word(text, character_before(text, begin))) &&
         (end == text.size() || !is_word(text, end));
}

bool TokenFinder::next(std::string_view text, size_t from, size_t done, Match& match,
                       size_t& next_from) const {
  for (size_t at = from; at < text.size(); ++at) {
    if (only_first_ >= 0) {
      at = text.find(static_cast<char>(only_first_), at);
      if (at == std::string_view::npos) return false;
    } else if (!trie_.begins(text[at])) {
      continue;
    }
    size_t length = 0;
    int32_t number = -1;
    trie_.beginnings(text.substr(at), [&](size_t found, int32_t value) {
      length = found;
      number = value;
    });
    if (number < 0) continue;
    const AddedToken& token = tokens_[static_cast<size_t>(number)];
    match = {at, at + length, token.id};
    if (token.single_word && !is_separate_word(text, match.begin, match.end)) {
      // The search goes on behind it, not within it.
      at += length - 1;
      continue;
    }
    next_from = match.end;
    if (token.strip_left) {
      while (match.begin > 0 && is_space(text, character_before(text, match.begin)))
        match.begin = character_before(text, match.begin);
      match.begin = std::max(match.begin, done);
    }
    if (token.strip_right)
      while (match.end < text.size() && is_space(text, match.end))
        match.end += utf8_character(text.data() + match.end).length;
    return true;
  }
  return false;
}

}  // namespace bev
