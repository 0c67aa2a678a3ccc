// ParamSpec: the one declaration of a parameter. Allocation, initialisation, gradient reduction,
// norm, decay, checkpoints, Hugging Face names, counting and planning all read this record.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/parallel_layout.h"
#include "tensor/tensor.h"

namespace bev {

// Initial values. Megatron-LM's rule: normal for weights, 1 and 0 for norms, 0 for biases.
struct Init {
  enum class Kind : uint8_t { Normal, Ones, Zeros } kind = Kind::Normal;
  double std = 0.02;

  static Init normal(double deviation) { return {Kind::Normal, deviation}; }
  // Of the projections whose output is added to the residual stream.
  static Init scaled_normal(double deviation, int64_t layers) {
    return {Kind::Normal, deviation / std::sqrt(2.0 * static_cast<double>(layers))};
  }
};

// A dimension is divided over an axis.
struct Cut {
  int dim;
  Axis axis;
};

// A named run of rows inside a fused parameter, cut on its own in whole units (a head), so that
// rank r holds the same heads of q, k and v, or the same columns of gate and up. With fewer units
// than ranks, rank r holds unit r * units / ranks.
struct Part {
  std::string name;
  int64_t extent;
  int64_t unit = 1;
};

// How the gradients of ranks that hold the same piece combine.
enum class Replica : uint8_t {
  Sum,   // each saw other tokens, or computed another term
  Same,  // each computed the same gradient
};

struct ParamSpec {
  std::string name;                    // global: the layer number is the model's, never the stage's
  Shape shape;                         // logical: of the whole model
  std::vector<Part> parts{};           // along the cut dim (or dim 0); empty: one part
  std::optional<Cut> cut{};            // none: whole on every rank
  std::map<Axis, Replica> replicas{};  // axes that do not cut it; Data and Context are always Sum
  Init init{};
  bool decay = true;
  std::string tied_to{};  // shares values with this parameter (embedding and head)

  bool is_matrix() const { return shape.rank() >= 2; }  // else a vector
};

// The same elements in logical and in local coordinates, along one dim.
struct Piece {
  int dim;
  int64_t logical_begin, local_begin, extent;
  int holders = 1;       // ranks along the cut axis that hold these elements
  bool is_first = true;  // of them
};

// All that anyone needs to know about sharding is derived here.
// Throws a Usage error naming the parameter when the units do not divide over the ranks.
std::vector<Piece> pieces(const ParamSpec& spec, const RankGrid& grid, int rank);
Shape local_shape(const ParamSpec& spec, const RankGrid& grid, int rank);
// What this rank writes and counts in the norm: each element belongs to one rank. Whole when all
// pieces are owned, else some of them or none.
std::vector<Piece> owned_pieces(const ParamSpec& spec, const RankGrid& grid, int rank);
// Whether the gradients of the ranks along an axis, which does not cut it, are to be summed.
bool sums_over(const ParamSpec& spec, Axis axis);

// Names that other folders ask for too.
inline constexpr const char* kTokenTable = "embedding.tokens.weight";
inline constexpr const char* kHeadWeight = "head.weight";  // absent where it is tied

// Whether the parameter has a row per token: the number of rows depends on how the vocabulary was
// padded, and those beyond the vocabulary mean nothing.
bool is_vocab_table(std::string_view parameter);

// The elements of pieces as runs without gaps, in local and in logical coordinates.

// Calls f(first local element, first logical element, count) for each run. `local` and `logical`:
// the shapes of the tensor as it is held and as a whole; the pieces lie along the first two dims.
template <class F>
void visit_runs(std::span<const Piece> pieces, const Shape& local, const Shape& logical, F&& f) {
  const int64_t columns = local.elements() / local[0];
  const int64_t all_columns = logical.elements() / logical[0];
  for (const Piece& piece : pieces) {
    if (piece.dim == 0) {
      f(piece.local_begin * columns, piece.logical_begin * all_columns, piece.extent * columns);
      continue;
    }
    for (int64_t row = 0; row < local[0]; ++row)
      f(row * columns + piece.local_begin, row * all_columns + piece.logical_begin, piece.extent);
  }
}

}  // namespace bev
