#include "param/param_spec.h"

#include "base/check.h"

namespace bev {

namespace {

// The units [begin, begin + count) of a part that coordinate `at` of `ranks` holds.
struct UnitRange {
  int64_t begin, count;
  int holders = 1;  // of each
};

UnitRange units_of(const ParamSpec& spec, const Part& part, int at, int ranks) {
  const int64_t units = div_exact(part.extent, part.unit);
  if (units < ranks) {
    BEV_CHECK(ranks % units == 0, Usage,
              "{}: {} units of '{}' cannot be shared by {} ranks; their number must divide {}",
              spec.name, units, part.name, ranks, ranks);
    return {at * units / ranks, 1, static_cast<int>(ranks / units)};
  }
  BEV_CHECK(units % ranks == 0, Usage, "{}: {} units of '{}' do not divide over {} ranks",
            spec.name, units, part.name, ranks);
  const int64_t count = units / ranks;
  return {at * count, count};
}

}  // namespace

std::vector<Piece> pieces(const ParamSpec& spec, const RankGrid& grid, int rank) {
  const int dim = spec.cut ? spec.cut->dim : 0;
  std::vector<Part> parts = spec.parts;
  if (parts.empty()) parts.push_back({"", spec.shape[dim], 1});
  const int ranks = spec.cut ? grid.size(spec.cut->axis) : 1;
  const int at = spec.cut ? grid.coordinate(rank, spec.cut->axis) : 0;

  std::vector<Piece> found;
  int64_t logical = 0, local = 0;
  for (const Part& part : parts) {
    const UnitRange range = units_of(spec, part, at, ranks);
    const int64_t extent = range.count * part.unit;
    found.push_back({.dim = dim,
                     .logical_begin = logical + range.begin * part.unit,
                     .local_begin = local,
                     .extent = extent,
                     .holders = range.holders,
                     .is_first = at % range.holders == 0});
    logical += part.extent;
    local += extent;
  }
  BEV_CHECK(logical == spec.shape[dim], Internal, "{}: parts cover {} of {}", spec.name, logical,
            spec.shape[dim]);
  return found;
}

Shape local_shape(const ParamSpec& spec, const RankGrid& grid, int rank) {
  Shape shape = spec.shape;
  const std::vector<Piece> held = pieces(spec, grid, rank);
  int64_t extent = 0;
  for (const Piece& piece : held) extent += piece.extent;
  shape.set(held.front().dim, extent);
  return shape;
}

std::vector<Piece> owned_pieces(const ParamSpec& spec, const RankGrid& grid, int rank) {
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline}) {
    const bool is_cut = spec.cut && spec.cut->axis == axis;
    // What is not replicated along the pipeline is in one stage only.
    const bool is_elsewhere = axis == Axis::Pipeline && !spec.replicas.contains(axis);
    if (!is_cut && !is_elsewhere && grid.coordinate(rank, axis) != 0) return {};
  }
  std::vector<Piece> owned = pieces(spec, grid, rank);
  std::erase_if(owned, [](const Piece& piece) { return !piece.is_first; });
  return owned;
}

bool sums_over(const ParamSpec& spec, Axis axis) {
  const auto found = spec.replicas.find(axis);
  return found != spec.replicas.end() && found->second == Replica::Sum;
}

bool is_vocab_table(std::string_view parameter) {
  return parameter == kTokenTable || parameter == kHeadWeight;
}

}  // namespace bev
