// What a tokenizer says about a run: the size of the vocabulary and the id that ends a document.
#pragma once

#include "config/load.h"

namespace bev {

constexpr int64_t kByteVocab = 257;  // the bytes and the end of a document
constexpr int64_t kByteEod = 256;

// Fills model.vocab and data.eod where they were left to the tokenizer. The result, printed and
// read again, means the same. A vocabulary file that cannot be read is a problem.
void apply_tokenizer(LoadedConfig& loaded, Findings& findings);

}  // namespace bev
