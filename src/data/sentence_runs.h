// Runs of sentences that samples of BERT and T5 are made of, and what samples of sentences share.
#pragma once

#include <optional>
#include <vector>

#include "base/philox.h"
#include "config/choices.h"
#include "config/data_split.h"
#include "data/batch.h"
#include "data/megatron/numpy_random.h"
#include "data/megatron/sentence_mapping.h"
#include "data/sample_random.h"
#include "data/token_file.h"

namespace bev {

// The part of a file of sentences that a dataset reads, and in which order.
struct SentencePart {
  SequenceRange documents{};  // of the split
  SampleOrder order = SampleOrder::Arithmetic;
  std::optional<int64_t> wanted{};  // Megatron's order: samples asked for; none: one epoch
  bool shuffled = true;             // arithmetic order: else in the order of the file
  uint64_t seed = 0;                // Megatron's order: 32 bits

  // Where a list of `count` samples has sample `index`. Arithmetic order: permuted in each epoch.
  // Megatron's: after the last sample the first follows again.
  size_t place(int64_t index, int64_t count) const;
  DocumentRule document_rule(int64_t least_sentences) const {
    return {.least_sentences = least_sentences,
            .overlong_is_left_out = order == SampleOrder::Megatron};
  }
};

// Data error if a mapping of `wanted` samples would take more memory than it is worth.
void check_mapping_size(const TokenFile& file, std::optional<int64_t> wanted, size_t bytes_each);

// Documents of a range with and without samples.
struct SentenceCounts {
  int64_t documents = 0, usable = 0;
  int64_t empty = 0, too_few = 0, overlong = 0;  // documents without a sample, and why
  int64_t cut = 0;                               // sentences of usable documents beyond a sample
};
// `room`: tokens of a sentence that fit a sample.
SentenceCounts count_sentences(const TokenIndex& index, SequenceRange documents,
                               const DocumentRule& rule, int64_t room);

// One piece per sentence for the tokens [begin, end) of the stream.
void add_sentence_pieces(const TokenFile& file, int64_t begin, int64_t end, SampleSource& source);

struct SentenceRunsSpec {
  SentencePart part{};
  int64_t longest = 0;  // tokens of a sample, without special ones
  double short_probability = 0;
  int64_t least_sentences = 1;
};

// In Megatron-LM's order sample i is run i of its mapping, with NumPy's numbers. In the arithmetic
// order the runs of all documents are permuted in each epoch, no sentence of a usable document is
// left out, and the numbers of a sample are a function of its index alone.
class SentenceRuns {
 public:
  // REQUIRES: a usable document. A mapping larger than memory should hold is a Data error.
  SentenceRuns(const TokenFile& file, const SentenceRunsSpec& spec);

  // Arithmetic order: of one epoch.
  int64_t count() const { return std::ssize(runs_); }
  int64_t epoch_samples() const { return epoch_samples_; }
  const SentenceRun& at(int64_t index) const { return runs_[part_.place(index, count())]; }
  // "sample 3: sentences 4 to 6 of PREFIX".
  std::string describe(int64_t index, const TokenFile& file) const;
  // None in Megatron's order, whose epochs are shuffled together.
  std::optional<int64_t> epoch_of(int64_t index) const;

  // Calls f with the random numbers of a sample. `purpose`: a name that keeps them apart from
  // others in the arithmetic order.
  template <class F>
  auto with_random(int64_t index, std::string_view purpose, F f) const {
    if (part_.order == SampleOrder::Megatron) {
      NumpyRandom random(
          static_cast<uint32_t>(part_.seed + static_cast<uint64_t>(index % count())));
      return f(random);
    }
    SampleRandom random{SampleStream(mix_key(part_.seed, purpose), index)};
    return f(random);
  }

 private:
  SentencePart part_;
  std::vector<SentenceRun> runs_;
  int64_t epoch_samples_ = 0;
};

}  // namespace bev
