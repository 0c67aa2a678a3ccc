// SentencePiece's table of replacements, which tokenizer.json holds as base64: a double-array trie
// of byte strings, and the texts that replace them.
#pragma once

#include <memory>
#include <string_view>

#include "text/huggingface/normalizer.h"

namespace bev {

// The table of the bytes. Data error that begins with `where` when they are none.
std::unique_ptr<Normalizer> charsmap_normalizer(std::string_view bytes, std::string_view where);

// The bytes that base64 text stands for; Data error that begins with `where` when it is none.
std::string bytes_of_base64(std::string_view text, std::string_view where);

}  // namespace bev
