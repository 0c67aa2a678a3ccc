// Samples of one token file in Megatron-LM's order, cut, padded and masked as it does.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "config/data_split.h"
#include "data/batch.h"
#include "data/token_file.h"

namespace bev {

// The three arrays by which Megatron-LM orders the samples of one token file: the shuffled
// documents of all epochs, where in them each sample begins, and the order of the samples. They are
// the same numbers as in its cache files. A document here is a sequence of the token file.

// Beyond this Megatron's order is not worth its memory.
inline constexpr int64_t kMostIndexBytes = int64_t{1} << 37;

struct MegatronIndexSpec {
  SequenceRange range{};              // of the split
  int64_t sequence = 0;               // tokens of a sample
  std::optional<int64_t> wanted = 0;  // samples asked for; none: one epoch
  uint32_t seed = 0;
  bool drop_partial = true;  // else a last sample that is not full is kept (validation only)
  bool extra_token = true;   // samples overlap by the token that only their last label needs
};

struct MegatronIndex {
  // Where a sample begins: a place in `documents` and a token of that document.
  struct Start {
    int64_t document = 0;
    int32_t offset = 0;
    bool operator==(const Start&) const = default;
  };

  std::vector<int32_t> documents;
  std::vector<Start> starts;     // of each sample, and the end of the last
  std::vector<int64_t> shuffle;  // sample i of a training is number shuffle[i]
  int64_t tokens_per_epoch = 0, epochs = 0;

  int64_t samples() const { return static_cast<int64_t>(shuffle.size()); }
};

// Even a range shorter than a sample has as many as are wanted: it is read over and over. One that
// is not long enough for the one epoch that was asked for has none. A range without a token, and an
// index larger than memory should hold, are Data errors.
MegatronIndex build_megatron_index(const TokenFile& file, const MegatronIndexSpec& spec);

struct MegatronSamplesSpec {
  MegatronIndexSpec index{};
  int64_t vocab = 0;
  EodRules ends{};
  bool separate_sequences = false;  // positions and attention start anew with each sequence
  // What fills a sample up. Wherever it is the label, nothing is learned, whoever put it there; as
  // an id it becomes 0. -1: no id of the vocabulary.
  int32_t pad = -1;
};

// The padding that is used: one that is also the end of a document would mask every end.
int32_t padding_in_use(int32_t pad, int64_t eod);

class MegatronDataset final : public CountedDataset {
 public:
  MegatronDataset(std::shared_ptr<const TokenFile> file, const MegatronSamplesSpec& spec);

  // Behind the last sample the first follows again: whoever reads ahead may ask for it.
  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  SampleSource source(int64_t index) const override;

  int64_t count() const override { return index_.samples(); }
  const MegatronIndex& index() const { return index_; }

  // The tokens of each piece of the sample, as they add up to its length: pieces of no token are
  // kept, the token behind the last is not counted.
  std::vector<int64_t> piece_lengths(int64_t index) const;

 private:
  // Calls f(sequence of the file, offset, tokens) for each piece, the extra token included.
  template <class F>
  void for_each_piece(int64_t index, F f) const;

  std::shared_ptr<const TokenFile> file_;
  MegatronSamplesSpec spec_;
  MegatronIndex index_;
};

}  // namespace bev
