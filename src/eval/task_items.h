// Items of evaluation tasks, read from jsonl: a context, and an ending that is scored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "infer/scoring_item.h"
#include "text/tokenizer.h"

namespace bev {

// The ids of context and ending as the one text that they are, with what the vocabulary puts in
// front of a text and without what it puts behind one. Scored are those behind the ids that the
// context alone begins with too: every token that has something of the ending in it. Encoding the
// ending by itself would not do: many vocabularies put a blank in front of each text.
// `first` is 0 where the first token has something of the ending in it.
ScoringItem ending_item(std::string_view context, std::string_view ending, Tokenizer& tokenizer);

// Files with a JSON object in each line.

// Calls f for each line that is not blank, without its end. What f throws begins with the name and
// the number of the line, which counts from 1.
void for_each_json_line(std::string_view name, std::string_view text,
                        FunctionRef<void(std::string_view line, int64_t number)> f);

// Items that are longer than what a model sees.

// Leaves out ids at the beginning until `length` tokens see all the others. Data error when what is
// scored is too long itself.
void shorten(ScoringItem& item, int64_t length);

}  // namespace bev
