// Random numbers of one sample: a function of a key and the number of the sample.
#pragma once

#include <cstdint>

#include "base/philox.h"
#include "data/megatron/numpy_random.h"

namespace bev {

class SampleStream {
 public:
  SampleStream(uint64_t key, int64_t sample)
      : rounds_(philox_rounds(key)), sample_(static_cast<uint64_t>(sample)) {}

  uint32_t operator()() {
    if (used_ == block_.size()) {
      block_ = philox(rounds_, blocks_++, sample_);
      used_ = 0;
    }
    return block_[used_++];
  }

 private:
  PhiloxRounds<> rounds_;
  uint64_t sample_, blocks_ = 0;
  PhiloxBlock block_{};
  size_t used_ = block_.size();
};

using SampleRandom = NumpyDraws<SampleStream>;

}  // namespace bev
