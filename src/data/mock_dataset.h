// Made-up text: each sample counts through the vocabulary from a random start in steps of one to
// four. A model learns it quickly, so a falling loss shows that the whole program works.
#pragma once

#include "data/batch.h"

namespace bev {

class MockDataset final : public Dataset {
 public:
  // REQUIRES: vocab >= 1.
  MockDataset(int64_t vocab, uint64_t seed) : vocab_(vocab), seed_(seed) {}
  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;

 private:
  void read_masked(int64_t index, HostBatch& batch, int64_t at) const;
  void read_pair(int64_t index, HostBatch& batch, int64_t at) const;

  int64_t vocab_;
  uint64_t seed_;
};

}  // namespace bev
