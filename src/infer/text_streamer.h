// The text of tokens as they are made, one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace bev {

// All pieces one after another are the text of all ids, as valid UTF-8
// (replace_invalid_utf8), up to the first stop string. A piece may be empty: a character that is
// not whole yet, and what may be the beginning of a stop string, are held back. The work for a
// token does not grow with the length of the text.
//
// One exception: where a vocabulary replaces all bytes of a run when one of them is wrong
// (byte_fallback_decoder), those already given stay as they are.
class TextStreamer {
 public:
  // `prompt`: what the text continues; a vocabulary may write the first word of a text unlike
  // others. `special`: whether special tokens are text. REQUIRES: the tokenizer outlives this; no
  // stop string is empty, each is UTF-8.
  explicit TextStreamer(const Tokenizer& tokenizer, std::vector<std::string> stops = {},
                        std::span<const int32_t> prompt = {},
                        SpecialIds special = SpecialIds::LeaveOut);

  struct Piece {
    std::string text{};
    bool stopped = false;  // a stop string was found: from now on all pieces are empty
  };
  Piece add(int32_t id);
  // What was held back, when no more tokens come: an unfinished character as U+FFFD.
  std::string finish();

 private:
  std::string pending_text() const;
  Piece take(std::string_view bytes, bool is_last);

  const Tokenizer* tokenizer_;
  SpecialIds special_;
  std::vector<std::string> stops_;
  // A token with text of its own, decoded in front of others so that they are not the first; its
  // text.
  std::vector<int32_t> anchor_;
  std::string anchor_text_;
  bool has_begun_;                // some text is in front of the pending ids
  std::vector<int32_t> pending_;  // ids whose text is not final
  std::string unfinished_;        // bytes of a character that is not whole
  std::string held_;              // perhaps the beginning of a stop string
  bool is_stopped_ = false;
};

}  // namespace bev
