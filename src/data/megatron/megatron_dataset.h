// Samples of one token file in Megatron-LM's order, cut, padded and masked as it does.
#pragma once

#include <memory>

#include "data/eod_rules.h"
#include "data/megatron/megatron_index.h"

namespace bev {

struct MegatronSamplesSpec {
  MegatronIndexSpec index{};
  int64_t vocab = 0;
  DocumentEnds ends{};
  bool separate_sequences = false;  // positions and attention start anew with each sequence
  // What fills a sample up. Wherever it is the label, nothing is learned, whoever put it there; as
  // an id it becomes 0. -1: no id of the vocabulary.
  int32_t pad = -1;
};

// The padding that is used: one that is also the end of a document would mask every end.
int32_t padding_in_use(int32_t pad, int64_t eod);

class MegatronSamples final : public Samples {
 public:
  MegatronSamples(std::shared_ptr<const TokenFile> file, const MegatronSamplesSpec& spec);

  // Behind the last sample the first follows again: whoever reads ahead may ask for it.
  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  SampleSource source(int64_t index) const override;

  int64_t count() const { return index_.samples(); }
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
