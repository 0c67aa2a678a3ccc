// Made-up samples of which some tokens do not count: more in some samples than in others, and none
// in a few. A mean over the wrong tokens, or over ranks instead of tokens, is then another number.
#pragma once

#include "data/mock_dataset.h"

namespace bev {

class UnevenSamples final : public Samples {
 public:
  explicit UnevenSamples(int64_t vocab) : tokens_(vocab, 7) {}
  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override { return tokens_.describe(index); }

 private:
  MockSamples tokens_;
};

}  // namespace bev
