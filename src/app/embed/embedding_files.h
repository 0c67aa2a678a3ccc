// Output formats of a few embeddings: lines of JSON, a safetensors file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev::app {

// An object on one line with the keys text, tokens, cut (if tokens were left out) and embedding.
std::string embedding_line(std::string_view text, int64_t tokens, int64_t cut,
                           std::span<const float> embedding);

// Vectors of one width as the tensor "embeddings", [vectors, width] of float32. The file appears
// whole. REQUIRES: there are vectors.
void write_embedding_tensor(const std::filesystem::path& path,
                            const std::vector<std::vector<float>>& vectors);

}  // namespace bev::app
