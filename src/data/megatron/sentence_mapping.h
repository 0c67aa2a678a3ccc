// Which sentences form the samples of models that read sentences (BERT, T5): Megatron-LM's mapping,
// bit for bit.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "config/data_split.h"
#include "data/token_file.h"

namespace bev {

// Whether a document has samples, and why not.
enum class DocumentUse : uint8_t { Usable, Empty, TooFew, Overlong };

// Megatron-LM leaves out documents with a sentence of more tokens.
inline constexpr int64_t kOverlongSentence = 512;

// Which documents have samples.
struct DocumentRule {
  int64_t least_sentences = 1;
  bool overlong_is_left_out = true;  // else such sentences are cut
  bool single_may_be_long = true;    // the sentence of a document that has no other
};
DocumentUse document_use(const TokenIndex& index, int64_t document, const DocumentRule& rule);

struct SentenceMappingSpec {
  int64_t first_document = 0, end_document = 0;
  int64_t epochs = 0;            // at most
  int64_t most_samples = 0;      // no epoch is begun once there are so many
  int64_t longest = 0;           // tokens of a sample, at least 2
  double short_probability = 0;  // of samples that are to be shorter
  uint32_t seed = 0;
  int64_t least_sentences = 1;
};

// Sentences [begin, end), cut to `target` tokens later.
struct SentenceRun {
  int64_t begin, end, target;
  bool operator==(const SentenceRun&) const = default;
};

// Shuffled. Documents with too few sentences or with an overlong one have none.
std::vector<SentenceRun> map_sentences(const TokenIndex& index, const SentenceMappingSpec& spec);

// Divides a document into runs: a run ends once it has its target of tokens and `least` sentences,
// if `least_left` sentences remain, and with the document. `draw_target` is called before the first
// run and after each, `add(begin, end, target)` with each. REQUIRES: the document is not empty.
struct CutRule {
  int64_t least = 1, least_left = 2;
};
template <class DrawTarget, class Add>
void cut_document(const TokenIndex& index, int64_t document, const CutRule& rule,
                  DrawTarget draw_target, Add add) {
  const int64_t end = index.document_begin(document + 1);
  int64_t begin = index.document_begin(document), tokens = 0;
  int64_t target = draw_target();
  for (int64_t i = begin; i < end; ++i) {
    tokens += index.length(i);
    const int64_t left = end - i - 1;
    const bool full = tokens >= target && left >= rule.least_left && i + 1 - begin >= rule.least;
    if (!full && left > 0) continue;
    add(begin, i + 1, target);
    begin = i + 1;
    tokens = 0;
    target = draw_target();
  }
}

// The order of a mapping.
template <class Row>
void shuffle_mapping(std::vector<Row>& rows, uint32_t seed) {
  std::mt19937_64 engine(uint64_t{seed} + 1);
  for (size_t i = rows.size(); i-- > 1;) std::swap(rows[i], rows[engine() % (i + 1)]);
}

}  // namespace bev
