// A trained byte-level vocabulary as the files that Hugging Face's libraries and bpe_vocab.h read.
#pragma once

#include <string>

#include "text/bpe/bpe_trainer.h"

namespace bev {

// vocab.json: names to ids, in the order of the ids.
std::string vocab_json(const TrainedBpe& trained);

// merges.txt: a pair of names a line, the first to be merged first.
std::string merges_txt(const TrainedBpe& trained);

// tokenizer.json: both, with GPT-2's division into pieces and the special tokens as such.
std::string tokenizer_json(const TrainedBpe& trained);

}  // namespace bev
