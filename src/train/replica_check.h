// Ranks that should hold the same numbers: whether they do.
#pragma once

#include <string>
#include <vector>

#include "device/buffer.h"
#include "train/training_state.h"

namespace bev {

// Compares hashes of weights, and of the optimizer's state where every data rank has all of it.
// What the layout divides has no second copy and cannot be compared.
class ReplicaCheck {
 public:
  // The assembly must outlive this.
  explicit ReplicaCheck(Assembly& assembly);

  // Empty: all copies are the same. Else which tensor differs on which rank, the same text on every
  // rank. All ranks together. REQUIRES: no step is in flight.
  std::string find_difference();

 private:
  // Tensors that all ranks of a communicator hold alike, by their place among hashes_.
  struct Shared {
    Communicator* ranks;
    std::vector<size_t> tensors;
  };
  struct Hashed {
    std::string name;
    ConstTensor tensor;
  };
  std::vector<int64_t> hashes();
  std::string compare(const Shared& shared, const std::vector<int64_t>& hashes);
  std::string name_ranks(Communicator& ranks, const Hashed& hashed, int64_t hash);

  Assembly& assembly_;
  std::vector<Hashed> tensors_;
  std::vector<Shared> shared_;
  Buffer memory_;
};

}  // namespace bev
