// Hugging Face's tokenizer.json. What a file asks for and is not done here is a Data error that
// names the file, the place and the value, so that ids are the library's or there are none. Two
// exceptions, because they are about batches and the library's own callers switch them off:
// truncation and padding are not looked at.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "text/huggingface/json_cursor.h"
#include "text/huggingface/pipeline_tokenizer.h"

namespace bev {

// `config` is the content of tokenizer_config.json, where there is one: it names the tokens that
// begin and end a text and so on. Without it they are those with the usual names.
std::shared_ptr<const TokenizerParts> parse_tokenizer_json(const JsonCursor& file,
                                                           const JsonCursor* config = nullptr);

// Of the file, or of the tokenizer.json in a folder, with the tokenizer_config.json beside it.
std::shared_ptr<const TokenizerParts> read_tokenizer_json(const std::filesystem::path& path);

// The sections of tokenizer.json, each read by a file of its own. A section that is null is empty.

// The elements of a Sequence under `list`, of Sequences in it too; otherwise the section itself.
std::vector<JsonCursor> flattened(const JsonCursor& section, const std::string& list);

// The value of "type".
std::string type_of(const JsonCursor& section);

// {"String": "x"}, or {"Regex": " {2,}"} and the like.
struct JsonPattern {
  bool is_regex;
  std::string text;
};
JsonPattern pattern_of(const JsonCursor& cursor);

std::vector<std::unique_ptr<const Normalizer>> read_normalizers(const JsonCursor& section);

// Steps and, where they are one, the pattern. Returns whether the model sees bytes.
bool read_piece_steps(const JsonCursor& section, TokenizerParts& parts);

std::shared_ptr<const TokenModel> read_model(const JsonCursor& section, bool bytes);

// REQUIRES: has(id) says whether there is such a token.
TextTemplate read_template(const JsonCursor& section, const std::function<bool(int64_t)>& has);

std::vector<std::unique_ptr<const TokenDecoder>> read_decoders(const JsonCursor& section);

// How Metaspace puts its character in front: "prepend_scheme", or the older "add_prefix_space".
Prepend read_prepend(const JsonCursor& section);

}  // namespace bev
