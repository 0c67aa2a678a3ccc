// Exact search: the rows of a file of embeddings that are most similar to a question.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "device/device.h"
#include "infer/embedding/embedding_file.h"

namespace bev {

enum class Similarity : uint8_t {
  Dot,     // inner product
  Cosine,  // 0 if the row or the question is 0
};
inline constexpr std::array<std::string_view, 2> kSimilarityNames{"dot", "cosine"};

struct EmbeddingSearch {
  int64_t top = 5;  // matches of each question, fewer if the file has fewer rows
  Similarity similarity = Similarity::Dot;
  size_t tile_bytes = 0;  // of rows, their normalized copy and scores; 0: what suits the device
};

struct EmbeddingMatch {
  int64_t row = 0;
  double score = 0;
  bool operator==(const EmbeddingMatch&) const = default;
};

// The best matches of each question, best first, of equal scores the lower row first. Scores are
// float64 sums in the order of the columns, and every row that could be a match is scored so: a
// GEMM in f32 over a tile of rows only excludes the others. The result is the same for every
// device, tile size and number of threads. Data error that names the row: it is not finite.
// `on_done` gets the number of rows done. REQUIRES: there are questions, finite and of the width of
// the file.
std::vector<std::vector<EmbeddingMatch>> search_embeddings(
    Device& device, const EmbeddingFile& file, const std::vector<std::vector<float>>& questions,
    const EmbeddingSearch& search, FunctionRef<void(int64_t rows)> on_done = [](int64_t) {});

}  // namespace bev
