#include "optim/param_norms.h"

#include <algorithm>

#include "base/check.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace bev {

std::vector<FlatRange> counted_ranges(const ParamStore& params, const FlatParam& place) {
  const FlatRange shard = params.section_of(place.begin).shard();
  std::vector<FlatRange> counted;
  for (const FlatRange& owned : owned_ranges(params, place)) {
    const FlatRange here = intersection(owned, shard);
    if (here.count > 0) counted.push_back(here);
  }
  return counted;
}

namespace {

// A tensor rank counts all that it holds: copies too.
std::vector<FlatRange> counted_in_shard(const ParamStore& params, const FlatParam& place) {
  const Placement& where = place.param->spec.place;
  const RankGrid grid = params.layout().grid(where.grid);
  if (where.is_shared() && grid.coordinate(params.rank(), Axis::Pipeline) != where.stages.front())
    return {};
  return {intersection({place.begin, place.count}, params.section_of(place.begin).shard())};
}

}  // namespace

ParamNorms::ParamNorms(const ParamStore& params, ProcessGroups& groups, NormScope scope)
    : ranks_(groups.over(scope == NormScope::Whole
                             ? AxisSet{Axis::Tensor, Axis::Context, Axis::Data}
                             : AxisSet{Axis::Context, Axis::Data})) {
  const auto row_of = [&](const FlatParam& place) {
    return std::find(params.all().begin(), params.all().end(), place.param) - params.all().begin();
  };
  for (const FlatParam& place : params.flat()) {
    // Rows are summed over ranks that must hold the same parameters.
    BEV_CHECK(place.param->spec.place.grid == GridKind::Dense, Internal,
              "the norm of {} on the grid of experts", place.param->spec.name);
    const FlatRange without_gap{place.begin, place.param->value.shape.elements()};
    for (const FlatRange& range : scope == NormScope::Whole ? counted_ranges(params, place)
                                                            : counted_in_shard(params, place)) {
      const FlatRange here = intersection(range, without_gap);
      if (here.count > 0) counted_.push_back({here, row_of(place)});
    }
  }
  for (const FlatParam* place : shared_params(params))
    shared_.push_back({row_of(*place), &groups.of_stages(place->param->spec.place.stages)});
}

void ParamNorms::all_reduce(Exec& ex, Tensor sums) const {
  if (ranks_.size() > 1) ranks_.all_reduce(ex, sums);
  // Only the first holder has counted: the others add zeros.
  for (const SharedRow& shared : shared_)
    shared.holders->all_reduce(ex, slice(sums, 0, shared.row, 1));
}

void ParamNorms::squared_norms(Exec& ex, FlatBuffer buffer, Tensor squares) const {
  ops::fill(ex, {.out = squares, .value = 0});
  for (const Counted& c : counted_)
    ops::squared_norm(
        ex, {.x = buffer(c.range.begin, c.range.count), .out = slice(squares, 0, c.row, 1)});
  all_reduce(ex, squares);
}

}  // namespace bev
