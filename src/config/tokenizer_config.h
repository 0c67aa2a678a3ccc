// What a tokenizer says about a run: the size of the vocabulary and the id that ends a document.
#pragma once

#include "config/parse/load.h"
#include "text/open_tokenizer.h"

namespace bev {

// The tokenizer of a run.
TokenizerSpec tokenizer_spec(const Config& config);
// The same, opened; null when the run does not say which it is or where its files are.
std::unique_ptr<Tokenizer> tokenizer_of(const Config& config);

// Fills model.vocab and data.eod where they were left to the tokenizer. The result, printed and
// read again, means the same. A vocabulary file that cannot be read is a problem.
void apply_tokenizer(LoadedConfig& loaded, Findings& findings);

}  // namespace bev
