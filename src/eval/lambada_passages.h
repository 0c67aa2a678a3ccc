// The passages of LAMBADA, and what of them a model must foresee.
#pragma once

#include <string_view>
#include <vector>

#include "infer/scoring_item.h"
#include "text/tokenizer.h"

namespace bev {

// Strict: the last word, whole, behind the text before it. Else: the last token of the text.
enum class LambadaRule : uint8_t { LastToken, LastWord };

// Of a passage, the ids and where those begin that must be foreseen. The text in front that does
// not fit `length` tokens is left out. Data error when nothing stands before them.
ScoringItem lambada_item(std::string_view passage, LambadaRule rule, int64_t length,
                         Tokenizer& tokenizer);

// The passages of a file: the text under "text" in each line. Data errors name the line.
std::vector<ScoringItem> read_lambada(std::string_view name, std::string_view file,
                                      LambadaRule rule, int64_t length, Tokenizer& tokenizer);

}  // namespace bev
