// Samples of BERT: pairs of segments from the sentences of one document, with masked words.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "config/choices.h"
#include "config/data_split.h"
#include "data/batch.h"
#include "data/megatron/sentence_mapping.h"
#include "data/token_file.h"
#include "data/word_masking.h"

namespace bev {

struct BertSamplesSpec {
  SequenceRange documents{};  // of the split, in documents
  SampleOrder order = SampleOrder::Arithmetic;
  std::optional<int64_t> wanted{};  // Megatron's order: samples asked for; none: one epoch
  bool shuffled = true;             // arithmetic order: else the runs in the order of the file
  uint64_t seed = 0;                // Megatron's order: 32 bits
  int64_t sequence = 0;             // tokens of a sample, at least kShortestBertSequence
  bool pairs = true;                // two segments, whose order is predicted; else one
  double short_probability = 0, mask_probability = 0;
  int64_t most_predictions = 0;  // of a sample; 0: as mask_probability says
  int64_t vocab = 0;             // ids of the file are below it
  std::shared_ptr<const MaskingVocabulary> vocabulary{};
};

// [CLS], [SEP], [SEP], and a token for each segment.
inline constexpr int64_t kShortestBertSequence = 5;

// Documents of a range with and without samples.
struct SentenceCounts {
  int64_t documents = 0, usable = 0;
  int64_t empty = 0, too_few = 0, overlong = 0;  // documents without a sample, and why
  int64_t cut = 0;                               // sentences of usable documents beyond a sample
};
SentenceCounts count_sentences(const TokenIndex& index, const BertSamplesSpec& spec);

// A run of sentences is divided into two segments, which are swapped in half of the samples (label
// 1), and cut from either end until they fit. In Megatron-LM's order sample i is run i of its
// mapping, with NumPy's numbers. In the arithmetic order the runs of all documents are permuted in
// each epoch, no sentence is left out of a usable document, and the numbers of a sample are a
// function of its index alone.
class BertDataset final : public CountedDataset {
 public:
  // REQUIRES: a usable document. A mapping larger than memory should hold is a Data error.
  BertDataset(std::shared_ptr<const TokenFile> file, BertSamplesSpec spec);

  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  // One piece per sentence.
  SampleSource source(int64_t index) const override;

  // Arithmetic order: of one epoch.
  int64_t count() const override { return std::ssize(runs_); }
  int64_t epoch_samples() const { return epoch_samples_; }
  // Its sentences, and the tokens it is cut to.
  SentenceRun run(int64_t index) const;

 private:
  // Tokens [begin, end) of the stream of the file.
  struct Segment {
    int64_t begin = 0, end = 0;
    int64_t tokens() const { return end - begin; }
  };
  struct Segments {
    Segment first{}, second{};
    bool swapped = false;
  };

  // Calls f with the random numbers of a sample.
  template <class F>
  auto with_random(int64_t index, F f) const;
  template <class Random>
  Segments divide(const SentenceRun& run, Random& random) const;
  template <class Random>
  void fill(const SentenceRun& run, Random& random, HostBatch& batch, int64_t at) const;

  std::shared_ptr<const TokenFile> file_;  // shared by the samples of all splits
  BertSamplesSpec spec_;
  std::vector<SentenceRun> runs_;
  int64_t epoch_samples_ = 0;
};

}  // namespace bev
