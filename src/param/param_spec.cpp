#include "param/param_spec.h"

#include "base/check.h"

namespace bev {

namespace {

// The units [begin, begin + count) of a part that coordinate `at` of `ranks` holds.
struct UnitRange {
  int64_t begin, count;
  int holders = 1;  // ranks that hold a unit
};

UnitRange units_of(const ParamSpec& spec, const Part& part, int at, int ranks) {
  const int64_t units = div_exact(part.extent, part.unit);
  if (units < ranks) {
    BEV_CHECK(ranks % units == 0, Usage,
              "{}: {} units of '{}' cannot be shared by {} ranks; their number must divide {}",
              spec.name, units, part.name, ranks, ranks);
    return {at * units / ranks, 1, static_cast<int>(ranks / units)};
  }
  BEV_CHECK(units % ranks == 0, Usage, "{}: {} units of '{}' are not divisible by {} ranks",
            spec.name, units, part.name, ranks);
  const int64_t count = units / ranks;
  return {at * count, count};
}

}  // namespace

std::vector<Piece> local_pieces(const ParamSpec& spec, const ParallelLayout& layout, int rank) {
  const Placement& place = spec.place;
  const RankGrid grid = layout.grid(place.grid);
  const int dim = place.cut ? place.cut->dim : 0;
  BEV_CHECK(dim == 0 || spec.shape.rank() == 2, Internal, "{}: dim {} of {} cannot be cut",
            spec.name, dim, to_string(spec.shape));
  std::vector<Part> parts = place.parts;
  if (parts.empty()) parts.push_back({"", spec.shape[dim], 1});
  const int ranks = place.cut ? grid.size(place.cut->axis) : 1;
  const int at = place.cut ? grid.coordinate(rank, place.cut->axis) : 0;

  std::vector<Piece> found;
  int64_t logical = 0, local = 0;
  for (const Part& part : parts) {
    const UnitRange range = units_of(spec, part, at, ranks);
    const int64_t begin = logical + range.begin * part.unit, extent = range.count * part.unit;
    Piece piece{.logical = whole_of(spec.shape),
                .replicas = range.holders,
                .is_first = at % range.holders == 0};
    (dim == 0 ? piece.logical.row : piece.logical.column) = begin;
    (dim == 0 ? piece.logical.rows : piece.logical.columns) = extent;
    (dim == 0 ? piece.local_row : piece.local_column) = local;
    found.push_back(piece);
    logical += part.extent;
    local += extent;
  }
  BEV_CHECK(logical == spec.shape[dim], Internal, "{}: parts cover {} of {}", spec.name, logical,
            spec.shape[dim]);
  return found;
}

Shape local_shape(const ParamSpec& spec, const ParallelLayout& layout, int rank) {
  const int dim = spec.place.cut ? spec.place.cut->dim : 0;
  int64_t extent = 0;
  for (const Piece& piece : local_pieces(spec, layout, rank))
    extent += dim == 0 ? piece.logical.rows : piece.logical.columns;
  Shape shape = spec.shape;
  shape.set(dim, extent);
  return shape;
}

std::vector<Piece> owned_pieces(const ParamSpec& spec, const ParallelLayout& layout, int rank) {
  const Placement& place = spec.place;
  const RankGrid grid = layout.grid(place.grid);
  if (!place.is_cut_by(Axis::Tensor) && grid.coordinate(rank, Axis::Tensor) != 0) return {};
  if (place.is_shared() && grid.coordinate(rank, Axis::Pipeline) != place.stages.front()) return {};
  std::vector<Piece> owned = local_pieces(spec, layout, rank);
  std::erase_if(owned, [](const Piece& piece) { return !piece.is_first; });
  return owned;
}

}  // namespace bev
