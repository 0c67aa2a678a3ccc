// The three arrays by which Megatron-LM orders the samples of one token file: the shuffled
// documents of all epochs, where in them each sample begins, and the order of the samples. They are
// the same numbers as in its cache files. A document here is a sequence of the token file.
#pragma once

#include <optional>
#include <vector>

#include "config/data_split.h"
#include "data/token_file.h"

namespace bev {

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

}  // namespace bev
