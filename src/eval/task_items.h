// A text whose ending is scored.
#pragma once

#include <string_view>

#include "infer/scoring_item.h"
#include "text/tokenizer.h"

namespace bev {

// The ids of context and ending as the one text that they are, with what the vocabulary puts in
// front of a text and without what it puts behind one. Scored are those behind the ids that the
// context alone begins with too: every token that has something of the ending in it. Encoding the
// ending by itself would not do: many vocabularies put a blank in front of each text.
// `first` is 0 where the first token has something of the ending in it.
ScoringItem ending_item(std::string_view context, std::string_view ending, Tokenizer& tokenizer);

}  // namespace bev
