// Embeddings of a corpus of any size: computed on any number of ranks, resumed after a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/function_ref.h"
#include "base/json.h"
#include "infer/embedding/corpus_text.h"
#include "infer/embedding/text_embedding.h"
#include "infer/loaded_model.h"

namespace bev {

// Row i of `output` (infer/embedding/embedding_file.h) is the embedding of text i. Beside it lies
// `output`.jsonl: a line that describes the rows, and for each window of rows a line with its
// checksum. Until all rows are computed both names end with .part, and a run with the same
// description keeps the windows that it finds.
struct CorpusEmbedding {
  std::filesystem::path output;
  EmbeddingRule rule{};
  int64_t length = 0;     // of a text in tokens, [CLS] and [SEP] included
  int64_t window = 1024;  // texts that are sorted by length, and computed again after a crash
};

struct CorpusProgress {
  int64_t kept_rows = 0;                  // of an earlier run
  int64_t cut_texts = 0, cut_tokens = 0;  // texts longer than `length`, tokens left out
};

// All ranks together: each data-parallel rank computes every n-th window. `on_rows` gets the rows
// finished by all ranks; the first call comes before any row is computed, with the rows that are
// kept. Usage error: the unfinished file has another description. Data error: another run writes
// the file, or it cannot be written.
CorpusProgress embed_corpus(LoadedModel& model, const ModelFolder& folder, const CorpusText& corpus,
                            const CorpusEmbedding& work, FunctionRef<void(int64_t rows)> on_rows);

// The description of the file `output`; nothing if it has none, because another program wrote it.
std::optional<Json> read_embedding_description(const std::filesystem::path& output);

// Usage error that names every key of `expected` whose value in `found` is another, and ends with
// `advice`.
void require_same_description(const Json& found, const Json& expected, const std::string& name,
                              const std::string& advice);

// Identifies the weights: of a checkpoint its manifest, else of the content of all files.
uint64_t model_checksum(const ModelFolder& folder);

}  // namespace bev
