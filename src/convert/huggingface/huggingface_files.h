// The files of a model in Hugging Face's format: their names, and which of them this program wrote.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace bev {

inline constexpr const char* kHuggingFaceConfig = "config.json";
inline constexpr const char* kHuggingFaceWeights = "model.safetensors";
inline constexpr const char* kHuggingFaceIndex = "model.safetensors.index.json";

// "model-00001-of-00003.safetensors", counted from 1; of one shard: model.safetensors.
std::string huggingface_shard_name(size_t number, size_t count);

// The metadata that mark a weights file as ours. In that file and not in config.json, because
// transformers carries fields it does not know into what it saves itself.
const std::map<std::string, std::string>& huggingface_metadata();

// Data error when the folder holds something other than an earlier output of this program.
void check_huggingface_replaceable(const std::filesystem::path& dir);

}  // namespace bev
