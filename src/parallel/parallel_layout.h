// The world as arithmetic: which rank sits where, and who its peers are along any set of axes.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/integer.h"
#include "config/config.h"

namespace bev {

// A dimension of the rank grid. ("dim" always means a tensor's dimension.)
enum class Axis : uint8_t { Tensor, Context, Data, Pipeline };
using AxisSet = std::set<Axis>;

// A mixed-radix numbering of ranks; the first axis varies fastest.
class RankGrid {
 public:
  RankGrid(std::initializer_list<std::pair<Axis, int>> axes) : axes_(axes) {}

  int world() const;
  int size(Axis axis) const;  // 1 if absent
  int coordinate(int rank, Axis axis) const;
  // The ranks that differ from this one only along `over`, ascending.
  std::vector<int> peers(int rank, const AxisSet& over) const;

 private:
  std::vector<std::pair<Axis, int>> axes_;
};

// How many ranks share what.
struct ParallelLayout {
  int tensor = 1, context = 1, data = 1, pipeline = 1;
  int chunks = 1;         // stages of each pipeline rank
  bool sequence = false;  // between tensor regions, tokens are cut over Axis::Tensor
  // What is divided over Axis::Data: 0: nothing; 1: optimizer state; 2: gradients too; 3: and
  // parameters.
  int zero = 0;
  // Whether what ranks along Axis::Data exchange passes beside other work: the sums of gradients
  // beside backward, gathered parameters beside forward. Divided gradients and divided parameters
  // then have two buckets of memory in turn.
  bool overlaps_grad_reduce = false, overlaps_param_gather = false;

  // Whether the gradients of each bucket are summed on their own.
  bool buckets_gradients() const { return zero > 0 || (data > 1 && overlaps_grad_reduce); }
  int world() const { return tensor * context * data * pipeline; }
  int stages() const { return pipeline * chunks; }
  RankGrid grid() const {
    return {{Axis::Tensor, tensor},
            {Axis::Context, context},
            {Axis::Data, data},
            {Axis::Pipeline, pipeline}};
  }
};

// What a checked configuration asks for.
ParallelLayout layout_of(const Config& config);

// "4 ranks: 2 share each matrix, 2 share the layers"
std::string describe(const ParallelLayout& layout);

}  // namespace bev
