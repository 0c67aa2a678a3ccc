// Samples cut from a token file: windows of length + 1 tokens, each of which begins with the last
// token of the window before it.
#pragma once

#include <memory>

#include "config/data_split.h"
#include "data/batch.h"
#include "data/token_file.h"

namespace bev {

struct TokenSamplesSpec {
  int64_t sequence = 0;  // tokens of a sample
  int64_t vocab = 0;
  bool shuffled = true;  // else the windows in the order of the file, the last ones repeated as the
                         // first
  uint64_t seed = 0;     // of the order
  EodRules ends{};
  bool separate_sequences = false;  // positions and attention start anew with each sequence
};

class TokenDataset final : public Dataset {
 public:
  // REQUIRES: the range lies in the file. A range without a whole window is a Data error.
  TokenDataset(std::shared_ptr<const TokenFile> file, SequenceRange range,
               const TokenSamplesSpec& spec);

  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  SampleSource source(int64_t index) const override;

  int64_t windows() const { return windows_; }
  int64_t tokens() const { return end_ - begin_; }

 private:
  int64_t window_begin(int64_t index) const;
  void separate_sequences(int64_t place, HostBatch& batch, int64_t at) const;

  std::shared_ptr<const TokenFile> file_;  // shared by the samples of all splits
  TokenSamplesSpec spec_;
  int64_t begin_, end_;  // in the stream of the file
  int64_t windows_;
};

}  // namespace bev
