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

// Shuffled. Documents with too few sentences or with an overlong one have none.
std::vector<SentenceRun> map_sentences(const TokenIndex& index, const SentenceMappingSpec& spec);

}  // namespace bev
