// Which sentences form the samples of models that read pairs of sentences (BERT, T5): Megatron-LM's
// mapping, bit for bit.
#pragma once

#include <cstdint>
#include <vector>

#include "data/token_file.h"

namespace bev {

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

// Megatron-LM leaves out documents of several sentences of which one has more tokens.
inline constexpr int64_t kOverlongSentence = 512;

// Shuffled. Documents with too few sentences or with an overlong one have none.
std::vector<SentenceRun> map_sentences(const TokenIndex& index, const SentenceMappingSpec& spec);

// Divides a document into runs: a run ends once it has its target of tokens, if more than one
// sentence is left, and with the document. `draw_target` is called before the first run and after
// each. REQUIRES: the document has at least `least_sentences`.
template <class DrawTarget>
void cut_document(const TokenIndex& index, int64_t document, int64_t least_sentences,
                  DrawTarget draw_target, std::vector<SentenceRun>& runs) {
  const int64_t end = index.document_begin(document + 1);
  int64_t begin = index.document_begin(document), tokens = 0;
  int64_t target = draw_target();
  for (int64_t i = begin; i < end; ++i) {
    tokens += index.length(i);
    const int64_t left = end - i - 1;
    const bool full = tokens >= target && left > 1 && i + 1 - begin >= least_sentences;
    if (!full && left > 0) continue;
    runs.push_back({begin, i + 1, target});
    begin = i + 1;
    tokens = 0;
    target = draw_target();
  }
}

}  // namespace bev
