#include "checkpoint/local_pieces.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

namespace {

// Which pieces of a parameter count.
enum class Which : uint8_t { Held, Written };

// Parts that follow each other here and in the whole are one: with one tensor rank all of them.
std::vector<Piece> joined(const std::vector<Piece>& pieces) {
  std::vector<Piece> result;
  for (const Piece& piece : pieces) {
    if (!result.empty()) {
      Piece& last = result.back();
      if (last.local_row + last.logical.rows == piece.local_row &&
          last.logical.row_end() == piece.logical.row) {
        last.logical.rows += piece.logical.rows;
        continue;
      }
    }
    result.push_back(piece);
  }
  return result;
}

// Collects pieces of one buffer.
class Collector {
 public:
  Collector(const ParamStore& params, Which choice, std::vector<LocalPiece>& out)
      : params_(params), choice_(choice), out_(out) {}

  // Elements [begin, end) of the flat order, as far as they are of this parameter; `first` is where
  // element `begin` lies.
  void add(const FlatParam& place, FlatRange range, const Tensor& first, const std::string& suffix,
           int buffer) {
    const Param& param = *place.param;
    const int64_t begin = std::max(range.begin, place.begin);
    const int64_t end = std::min(range.end(), place.begin + param.value.shape.elements());
    if (begin >= end) return;
    const size_t size = size_of(first.dtype);
    // Of local element `index` of the parameter.
    const auto address = [&](int64_t index) {
      return first.data == nullptr
                 ? nullptr
                 : first.data + static_cast<size_t>(place.begin + index - range.begin) * size;
    };
    const auto put = [&](const Rectangle& where, int64_t index) {
      if (where.elements() == 0) return;
      out_.push_back({.param = &param,
                      .piece = {.tensor = param.spec.name + suffix,
                                .dtype = first.dtype,
                                .shape = param.spec.shape,
                                .where = where},
                      .data = address(index),
                      .flat = place.begin + index,
                      .buffer = buffer});
    };
    const std::vector<Piece> pieces =
        joined(choice_ == Which::Held ? param.pieces
                                      : owned_pieces(param.spec, params_.layout(), params_.rank()));
    const Rectangle local = whole_of(param.value.shape);
    for (const Piece& piece : pieces) {
      BEV_CHECK(piece.logical.columns == local.columns, Internal,
                "{}: a piece has gaps between its rows", param.spec.name);
      const int64_t piece_begin = piece.local_row * local.columns;
      const int64_t piece_end = piece_begin + piece.logical.elements();
      const Rectangle corner{.row = piece.logical.row - piece.local_row,
                             .column = piece.logical.column};
      add_run(std::max(begin - place.begin, piece_begin), std::min(end - place.begin, piece_end),
              local.columns, corner, put);
    }
  }

 private:
  // Local elements [from, to) as a part of a row, whole rows, and a part of a row. `corner`: where
  // local element 0 would lie.
  template <class Put>
  static void add_run(int64_t from, int64_t to, int64_t columns, const Rectangle& corner,
                      const Put& put) {
    while (from < to) {
      const int64_t row = from / columns, column = from % columns;
      const bool starts_row = column == 0 && to - from >= columns;
      const int64_t rows = starts_row ? (to - from) / columns : 1;
      const int64_t width = starts_row ? columns : std::min(columns - column, to - from);
      put(Rectangle{.row = corner.row + row,
                    .column = corner.column + column,
                    .rows = rows,
                    .columns = width},
          from);
      from += rows * width;
    }
  }

  const ParamStore& params_;
  Which choice_;
  std::vector<LocalPiece>& out_;
};

// True if this rank of the shard group writes a parameter of which all its ranks have a copy. Each
// writes about the same number of elements.
bool writes_replica(const ParamStore& params, const FlatParam& place) {
  const int64_t middle = place.begin + place.count / 2;
  const GridKind grid = place.param->spec.place.grid;
  return middle * params.layout().shards(grid) / params.flat_elements() ==
         static_cast<int64_t>(params.shard_index(grid));
}

std::vector<LocalPiece> weights(const ParamStore& params, Which choice) {
  std::vector<LocalPiece> pieces;
  Collector collector(params, choice, pieces);
  if (params.is_sharded()) {
    for (const FlatSection& section : params.sections()) {
      const FlatRange shard = section.shard();
      for (const FlatParam& place : params.flat())
        collector.add(place, shard, params.value_range(shard.begin, shard.count), "", 0);
    }
    return pieces;
  }
  for (const FlatParam& place : params.flat()) {
    if (choice == Which::Written && !writes_replica(params, place)) continue;
    collector.add(place, {place.begin, place.count}, params.value_range(place.begin, place.count),
                  "", 0);
  }
  return pieces;
}

// True if this rank writes what is kept once per parameter: one rank of all that hold a part of it.
bool writes_scalar(const ParamStore& params, const ParamSpec& spec) {
  const Placement& place = spec.place;
  const RankGrid grid = params.layout().grid(place.grid);
  const bool is_first_stage =
      !place.is_shared() || grid.coordinate(params.rank(), Axis::Pipeline) == place.stages.front();
  return is_first_stage && grid.coordinate(params.rank(), Axis::Tensor) == 0 &&
         params.shard_index(place.grid) == 0;
}

// A state with one number per parameter.
void add_scalars(const ParamStore& params, const OptimizerState& state, Which choice, int buffer,
                 std::vector<LocalPiece>& pieces) {
  const Shape one{1};
  for (size_t i = 0; i < params.all().size(); ++i) {
    const Param& param = *params.all()[i];
    if (choice == Which::Written && !writes_scalar(params, param.spec)) continue;
    const auto row = static_cast<int64_t>(i);
    pieces.push_back({.param = &param,
                      .piece = {.tensor = format("{}/{}", param.spec.name, state.name),
                                .dtype = state.flat.dtype,
                                .shape = one,
                                .where = whole_of(one)},
                      .data = slice(state.flat, 0, row, 1).data,
                      .flat = row,
                      .buffer = buffer});
  }
}

std::vector<LocalPiece> states(const ParamStore& params, const Optimizer& optimizer, Which choice) {
  std::vector<LocalPiece> pieces;
  Collector collector(params, choice, pieces);
  const bool is_replica = params.layout().zero == 0;
  int buffer = 0;
  for (const OptimizerState& state : optimizer.states()) {
    ++buffer;
    if (state.per_param) {
      add_scalars(params, state, choice, buffer, pieces);
      continue;
    }
    for (const UpdateRange& range : optimizer.ranges()) {
      if (choice == Which::Written && is_replica && !writes_replica(params, *range.place)) continue;
      collector.add(*range.place, range, UpdateBuffers::state(state.flat, range),
                    format("/{}", state.name), buffer);
    }
  }
  return pieces;
}

}  // namespace

std::vector<LocalPiece> local_weights(const ParamStore& params) {
  return weights(params, Which::Held);
}

std::vector<LocalPiece> held_states(const ParamStore& params, const Optimizer& optimizer) {
  return states(params, optimizer, Which::Held);
}

std::vector<LocalPiece> weights_to_save(const ParamStore& params) {
  return weights(params, Which::Written);
}

std::vector<LocalPiece> written_states(const ParamStore& params, const Optimizer& optimizer) {
  return states(params, optimizer, Which::Written);
}

}  // namespace bev
