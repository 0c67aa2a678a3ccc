// The pieces of logical tensors that one rank has in its memory: what it writes into a checkpoint,
// and what it fills from one. The one place that knows how flat buffers and shares of them map to
// logical coordinates.
#pragma once

#include <vector>

#include "checkpoint/piece_file.h"
#include "optim/optimizer.h"
#include "param/param_store.h"

namespace bev {

struct LocalPiece {
  TensorPiece piece;
  std::byte* data = nullptr;  // on the device, row by row without gaps; null on the null device
  int64_t flat = 0;           // the first element's place in the flat order
  // Pieces with the same number lie in one buffer; those whose places in the flat order follow each
  // other are there as far apart as in the flat order.
  int buffer = 0;
};

// Everything this rank holds: values of parameters, "NAME"; what its optimizer keeps of those that
// it updates, "NAME/adam.m". Where a share of a divided buffer begins or ends inside a row, that
// row is a piece of its own. REQUIRES: the store is allocated.
std::vector<LocalPiece> local_weights(const ParamStore& params);
std::vector<LocalPiece> held_states(const ParamStore& params, const Optimizer& optimizer);

// Those of them that this rank writes: over all ranks each element once. What several ranks that
// share the batch hold alike is divided among them by whole parameters.
std::vector<LocalPiece> weights_to_save(const ParamStore& params);
std::vector<LocalPiece> written_states(const ParamStore& params, const Optimizer& optimizer);

}  // namespace bev
