// Samples of T5: a text whose masked spans are replaced by sentinels, and the spans.
#pragma once

#include <memory>
#include <vector>

#include "data/batch.h"
#include "data/sentence_runs.h"
#include "data/span_masking.h"
#include "data/token_file.h"

namespace bev {

struct T5SamplesSpec {
  SentencePart part{};
  int64_t sequence = 0, decoder_sequence = 0;  // tokens of both texts
  double short_probability = 0, mask_probability = 0;
  int64_t most_predictions = 0;  // of a sample; 0: as mask_probability says
  int64_t vocab = 0;             // ids of the file are below it
  std::shared_ptr<const SpanVocabulary> vocabulary{};

  // Megatron-LM leaves room for two tokens that it does not add.
  int64_t longest() const { return sequence - 2; }
};

// The shortest target has two tokens.
inline constexpr int64_t kShortestT5Sequence = 4;

// The texts of a sample, without padding.
struct T5Texts {
  std::vector<int32_t> encoder;  // each span replaced by its sentinel
  std::vector<int32_t> decoder;  // begin, and for each span its sentinel and its tokens
  std::vector<int32_t> targets;  // the same without begin, and the end
  bool lacked_room = false;      // spans were shortened or left in the encoder's text
};

// Makes a sample of tokens whose spans `masker` chose. `texts` keeps its memory.
void split_at_spans(std::span<const int32_t> tokens, const SpanMasker& masker,
                    const SpanVocabulary& vocabulary, T5Texts& texts);

// Sequence `at` of the batch becomes this sample, padded.
void put_t5_texts(const T5Texts& texts, int32_t pad, HostBatch& batch, int64_t at);

// The tokens of a run of sentences, cut to its target. Spans have sentinels in the order of the
// text. Spans that the decoder or the sentinels have no room for stay in the encoder's text;
// Megatron-LM ends with an error there.
class T5Dataset final : public CountedDataset {
 public:
  // REQUIRES: a usable document. A mapping larger than memory should hold is a Data error.
  T5Dataset(std::shared_ptr<const TokenFile> file, T5SamplesSpec spec);

  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  // One piece per sentence.
  SampleSource source(int64_t index) const override;

  // Valid until the next call on this thread.
  const T5Texts& texts(int64_t index) const;
  int64_t count() const override { return runs_.count(); }
  const SentenceRuns& runs() const { return runs_; }

 private:
  int64_t stream_end(const SentenceRun& run) const;

  std::shared_ptr<const TokenFile> file_;  // shared by the samples of all splits
  T5SamplesSpec spec_;
  SentenceRuns runs_;
};

}  // namespace bev
