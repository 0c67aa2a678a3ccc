// English text cut into sentences, by rules of our own: a period, question or exclamation mark ends
// one when white space follows and then something that can begin the next, unless the word before
// it is a known abbreviation, an initial or an enumerator. A blank line ends one too.
#pragma once

#include <string_view>
#include <vector>

namespace bev {

enum class SentenceBlanks : uint8_t {
  Trim,  // sentences without the white space around them
  Keep,  // each with what follows it: together they are the text
};

// Appends the sentences of the text, none of them empty, as views into it. REQUIRES: valid UTF-8.
void split_sentences(std::string_view text, SentenceBlanks blanks,
                     std::vector<std::string_view>& sentences);

}  // namespace bev
