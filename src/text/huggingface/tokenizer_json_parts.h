// The sections of tokenizer.json, each read by a file of its own. A section that is null is empty.
#pragma once

#include <functional>

#include "text/huggingface/json_cursor.h"
#include "text/huggingface/pipeline_tokenizer.h"

namespace bev {

// The elements of a Sequence under `list`, of Sequences in it too; otherwise the section itself.
std::vector<JsonPlace> flattened(const JsonPlace& section, const std::string& list);

// The value of "type".
std::string type_of(const JsonPlace& section);

// {"String": "x"}, or {"Regex": " {2,}"} and the like.
struct JsonPattern {
  bool is_regex;
  std::string text;
};
JsonPattern pattern_of(const JsonPlace& place);

std::vector<std::unique_ptr<const Normalizer>> read_normalizers(const JsonPlace& section);

// Steps and, where they are one, the pattern. Returns whether the model sees bytes.
bool read_piece_steps(const JsonPlace& section, TokenizerParts& parts);

std::shared_ptr<const TokenModel> read_model(const JsonPlace& section, bool bytes);

// REQUIRES: has(id) says whether there is such a token.
TextTemplate read_template(const JsonPlace& section, const std::function<bool(int64_t)>& has);

std::vector<std::unique_ptr<const TokenDecoder>> read_decoders(const JsonPlace& section);

// How Metaspace puts its character in front: "prepend_scheme", or the older "add_prefix_space".
Prepend read_prepend(const JsonPlace& section);

}  // namespace bev
