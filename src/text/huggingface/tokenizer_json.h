// Hugging Face's tokenizer.json. What a file asks for and is not done here is a Data error that
// names the file, the place and the value, so that ids are the library's or there are none. Two
// exceptions, because they are about batches and the library's own callers switch them off:
// truncation and padding are not looked at.
#pragma once

#include <filesystem>
#include <memory>

#include "text/huggingface/json_cursor.h"
#include "text/huggingface/pipeline_tokenizer.h"

namespace bev {

// `config` is the content of tokenizer_config.json, where there is one: it names the tokens that
// begin and end a text and so on. Without it they are those with the usual names.
std::shared_ptr<const TokenizerParts> parse_tokenizer_json(const JsonPlace& file,
                                                           const JsonPlace* config = nullptr);

// Of the file, or of the tokenizer.json in a folder, with the tokenizer_config.json beside it.
std::shared_ptr<const TokenizerParts> read_tokenizer_json(const std::filesystem::path& path);

}  // namespace bev
