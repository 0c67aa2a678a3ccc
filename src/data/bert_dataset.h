// Samples of BERT: pairs of segments from the sentences of one document, with masked words.
#pragma once

#include <memory>

#include "data/batch.h"
#include "data/sentence_runs.h"
#include "data/token_file.h"
#include "data/word_masking.h"

namespace bev {

struct BertSamplesSpec {
  SentencePart part{};
  int64_t sequence = 0;  // tokens of a sample, at least kShortestBertSequence
  bool pairs = true;     // two segments, whose order is predicted; else one
  double short_probability = 0, mask_probability = 0;
  int64_t most_predictions = 0;  // of a sample; 0: as mask_probability says
  int64_t vocab = 0;             // ids of the file are below it
  std::shared_ptr<const MaskingVocabulary> vocabulary{};

  int64_t least_sentences() const { return pairs ? 2 : 1; }
  // Tokens of a sentence that fit a sample.
  int64_t room() const { return sequence - (pairs ? 3 : 2); }
};

// [CLS], [SEP], [SEP], and a token for each segment.
inline constexpr int64_t kShortestBertSequence = 5;

// A run of sentences is divided into two segments, which are swapped in half of the samples (label
// 1), and cut from either end until they fit.
class BertDataset final : public CountedDataset {
 public:
  // REQUIRES: a usable document. A mapping larger than memory should hold is a Data error.
  BertDataset(std::shared_ptr<const TokenFile> file, BertSamplesSpec spec);

  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  // One piece per sentence.
  SampleSource source(int64_t index) const override;

  int64_t count() const override { return runs_.count(); }
  const SentenceRuns& runs() const { return runs_; }

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

  template <class Random>
  Segments divide(const SentenceRun& run, Random& random) const;
  template <class Random>
  void fill(const SentenceRun& run, Random& random, HostBatch& batch, int64_t at) const;

  std::shared_ptr<const TokenFile> file_;  // shared by the samples of all splits
  BertSamplesSpec spec_;
  SentenceRuns runs_;
};

}  // namespace bev
