// Hugging Face's config.json read as a ModelConfig, in both spellings: that of transformers 4
// (rope_theta, rope_scaling) and that of version 5 (rope_parameters).
#pragma once

#include <filesystem>
#include <string_view>

#include "convert/huggingface/huggingface_family.h"

namespace bev {

struct HuggingFaceModel {
  HuggingFaceFamily family;
  ModelConfig model;  // vocab_multiple is 1: the rows of the file and no others
};

// Reads <dir>/config.json. A file that is not what it should be is a Data error; a model we do not
// have is a Usage error naming the field and what there is.
HuggingFaceModel read_huggingface_config(const std::filesystem::path& dir);
HuggingFaceModel parse_huggingface_config(const Json& config, std::string_view source);

}  // namespace bev
