// The rank grid as arithmetic: the coordinates of a rank, and its peers along any set of axes.
#pragma once

#include <compare>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/integer.h"
#include "config/config.h"

namespace bev {

// A dimension of the rank grid. ("dim" always means a tensor's dimension.)
enum class Axis : uint8_t { Tensor, Context, Expert, Data, Pipeline };

class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (const Axis axis : axes) bits_ |= bit(axis);
  }
  constexpr bool contains(Axis axis) const { return (bits_ & bit(axis)) != 0; }
  auto operator<=>(const AxisSet&) const = default;

 private:
  static constexpr uint8_t bit(Axis axis) {
    return static_cast<uint8_t>(1U << static_cast<unsigned>(axis));
  }
  uint8_t bits_ = 0;
};

// The same ranks are numbered in two ways. Dense: tensor x context x data x pipeline. Experts:
// expert tensor x expert x expert data x pipeline.
enum class GridKind : uint8_t { Dense, Experts };

// A set of process groups: the ranks of one group differ along `axes` of `grid` only.
struct GroupKey {
  GridKind grid = GridKind::Dense;
  AxisSet axes{};
  auto operator<=>(const GroupKey&) const = default;
};

// The ranks that hold equal pieces of a parameter and compute different tokens: they sum its
// gradient and shard its state.
constexpr GroupKey shard_group(GridKind grid) {
  if (grid == GridKind::Experts) return {grid, {Axis::Data}};
  return {grid, {Axis::Context, Axis::Data}};
}

// A mixed-radix numbering of ranks; the first axis varies fastest.
class RankGrid {
 public:
  RankGrid(std::initializer_list<std::pair<Axis, int>> axes) : axes_(axes) {}

  int world() const;
  int size(Axis axis) const;  // 1 if absent
  int coordinate(int rank, Axis axis) const;
  // The ranks that differ from this one only along `over`, ascending.
  std::vector<int> peers(int rank, AxisSet over) const;

 private:
  std::vector<std::pair<Axis, int>> axes_;
};

struct ParallelLayout {
  int tensor = 1, context = 1, data = 1, pipeline = 1;
  int expert = 1, expert_tensor = 1;  // expert * expert_tensor divides tensor * context * data
  int chunks = 1;                     // stages of each pipeline rank
  bool sequence = false;              // between tensor regions, Axis::Tensor shards the tokens
  // The shard group shards 0: nothing; 1: optimizer state; 2: gradients too; 3: and parameters.
  int zero = 0;
  // True if the collectives of the shard group overlap with computation: gradient sums with
  // backward, parameter gathers with forward. Sharded gradients and sharded parameters are then
  // double-buffered.
  bool overlaps_grad_reduce = false, overlaps_param_gather = false;

  int world() const { return tensor * context * data * pipeline; }
  int stages() const { return pipeline * chunks; }
  int expert_data() const {
    return static_cast<int>(div_exact(tensor * context * data, expert * expert_tensor));
  }
  // A rank has the same Pipeline coordinate in both grids.
  RankGrid grid(GridKind kind = GridKind::Dense) const;
  // Ranks of a shard group.
  int shards(GridKind kind = GridKind::Dense) const;
  // True if the gradients of each bucket are summed separately.
  bool buckets_gradients() const { return zero > 0 || (shards() > 1 && overlaps_grad_reduce); }
};

// The layout of a checked configuration.
ParallelLayout layout_of(const Config& config);

// "8 ranks: tensor 2 with sequence parallelism, data 2 with ZeRO 1, pipeline 2"
std::string describe(const ParallelLayout& layout);

}  // namespace bev
