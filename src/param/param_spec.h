// ParamSpec: the one declaration of a parameter. Allocation, initialisation, gradient reduction,
// norm, weight decay, checkpoints, weight conversion, counting and planning all read this record.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/parallel_layout.h"
#include "tensor/rectangle.h"
#include "tensor/tensor.h"

namespace bev {

// Initial values. Megatron-LM's rule: normal for weights, 1 and 0 for norms, 0 for biases.
struct Init {
  enum class Kind : uint8_t { Normal, Ones, Zeros } kind = Kind::Normal;
  double std = 0.02;

  static Init normal(double deviation) { return {Kind::Normal, deviation}; }
  // For projections whose output is added to the residual stream.
  static Init scaled_normal(double deviation, int64_t layers) {
    return {Kind::Normal, deviation / std::sqrt(2.0 * static_cast<double>(layers))};
  }
};

// An axis shards a dimension.
struct Cut {
  int dim;
  Axis axis;
};

// A named run of rows inside a fused parameter. Each part is cut separately in whole units (a
// head): rank r holds the same heads of q, k and v, or the same columns of gate and up. With fewer
// units than ranks, rank r holds unit r * units / ranks.
struct Part {
  std::string name;
  int64_t extent;
  int64_t unit = 1;
};

// The gradients of ranks that hold the same piece.
enum class Replica : uint8_t {
  Sum,   // add up: each rank computed other tokens or another term
  Same,  // agree: each rank computed the same gradient
};

// The purpose of a parameter in its model. Other folders ask for a role instead of a name.
enum class Role : uint8_t {
  TokenTable,
  PositionTable,
  TypeTable,
  RelativeTable,  // of attention biases by head and distance
  Head,
  HeadBias,
  Matrix,
  Router,
  Norm,
  Bias
};

// A table, or a vector, with one row per token: the number of rows depends on the padding of the
// vocabulary, and rows beyond the vocabulary have no meaning.
constexpr bool is_vocab_table(Role role) {
  return role == Role::TokenTable || role == Role::Head || role == Role::HeadBias;
}

// The ranks that hold a parameter, and their pieces of it.
struct Placement {
  GridKind grid = GridKind::Dense;
  std::optional<Cut> cut{};   // none: whole on every rank that holds it
  std::vector<Part> parts{};  // along the cut dim (or dim 0); empty: one part
  std::vector<int> stages{};  // pipeline coordinates of all holders, ascending; empty: one holder
  // If Axis::Tensor does not cut it: gradients of the copies.
  Replica tensor = Replica::Same;

  bool is_shared() const { return stages.size() > 1; }
  bool is_cut_by(Axis axis) const { return cut && cut->axis == axis; }
  // True if tensor ranks hold copies whose gradients add up.
  bool sums_over_tensor() const { return !is_cut_by(Axis::Tensor) && tensor == Replica::Sum; }
};

struct ParamSpec {
  std::string name;  // global: the layer number is the model's, never the stage's
  Shape shape;       // logical: of the whole model
  Role role = Role::Matrix;
  Placement place{};
  Init init{};

  bool is_matrix() const { return shape.rank() >= 2; }  // else a vector
  bool decays() const { return role != Role::Norm && role != Role::Bias && role != Role::HeadBias; }
};

// A rectangle of the logical tensor and its place in the tensor that a rank holds.
struct Piece {
  Rectangle logical;
  int64_t local_row = 0, local_column = 0;
  int replicas = 1;      // tensor ranks that hold these elements
  bool is_first = true;  // among these tensor ranks
};

// The pieces that a rank holds, one per part. Throws a Usage error naming the parameter if the
// number of units is not divisible by the number of ranks.
std::vector<Piece> local_pieces(const ParamSpec& spec, const ParallelLayout& layout, int rank);
Shape local_shape(const ParamSpec& spec, const ParallelLayout& layout, int rank);
// The pieces that a rank writes and counts in the norm. Each element belongs to one rank of every
// shard group: all pieces are owned, or some of them, or none.
std::vector<Piece> owned_pieces(const ParamSpec& spec, const ParallelLayout& layout, int rank);

// Calls f(first local element, first logical element, count) for each run of elements without gaps
// in the local and in the logical tensor.
template <class F>
void visit_runs(std::span<const Piece> pieces, const Shape& local, const Shape& logical, F&& f) {
  const int64_t columns = whole_of(local).columns, all_columns = whole_of(logical).columns;
  for (const Piece& piece : pieces) {
    const Rectangle& r = piece.logical;
    const bool whole_rows = r.columns == columns && columns == all_columns;
    for (int64_t row = 0; row < r.rows; row += whole_rows ? r.rows : 1)
      f((piece.local_row + row) * columns + piece.local_column,
        (r.row + row) * all_columns + r.column, whole_rows ? r.elements() : r.columns);
  }
}

}  // namespace bev
