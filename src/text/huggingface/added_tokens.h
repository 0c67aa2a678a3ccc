// Tokens beside those of the model: most are found in a text before anything else is done with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/huggingface/byte_trie.h"

namespace bev {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;                          // may be left out when ids are made text
  bool in_texts = true;                          // looked for in texts at all
  bool normalized = false;                       // looked for in the normalized text
  bool single_word = false;                      // only where no word character stands beside it
  bool strip_left = false, strip_right = false;  // white space beside it belongs to it
};

// Finds some tokens in a text: from the left, of those that begin at a place the longest.
class TokenFinder {
 public:
  // `patterns` are what is looked for, one for each token; empty ones are never found, of equal
  // ones the first is.
  TokenFinder(const std::vector<AddedToken>& tokens, const std::vector<std::string>& patterns);

  struct Match {
    size_t begin, end;  // with white space that belongs to it
    int32_t id;
  };

  // The next token that begins at `from` or behind it; false when there is none. The tokens before
  // end at `done`. REQUIRES: valid UTF-8.
  bool next(std::string_view text, size_t from, size_t done, Match& match, size_t& next_from) const;

  bool empty() const { return trie_.empty(); }

 private:
  bool is_separate_word(std::string_view text, size_t begin, size_t end) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;        // numbers are places in tokens_
  int only_first_ = -1;  // the byte that all of them begin with; -1: several
};

// The parts of a text between tokens, and the tokens: text(part, begins_the_text) and token(id) in
// their order. Empty parts are left out.
template <class OnText, class OnToken>
void split_at_tokens(const TokenFinder& finder, std::string_view text, OnText&& on_text,
                     OnToken&& on_token) {
  size_t done = 0;
  if (!finder.empty()) {
    TokenFinder::Match match{};
    size_t from = 0;
    while (finder.next(text, from, done, match, from)) {
      if (done < match.begin) on_text(text.substr(done, match.begin - done), done == 0);
      on_token(match.id);
      done = match.end;
    }
  }
  if (done < text.size()) on_text(text.substr(done), done == 0);
}

}  // namespace bev
