// The pieces of logical tensors that one rank has in memory: it writes them into a checkpoint and
// fills them from one. Only this file maps flat buffers and their shards to logical coordinates.
#pragma once

#include <vector>

#include "checkpoint/piece_file.h"
#include "optim/optimizer.h"
#include "param/param_store.h"

namespace bev {

struct LocalPiece {
  const Param* param;
  TensorPiece piece;
  std::byte* data = nullptr;  // on the device, row by row without gaps; null on the null device
  int64_t flat = 0;           // the first element's place in the flat order
  // Pieces with the same number lie in one buffer; those whose places in the flat order follow each
  // other are there as far apart as in the flat order.
  int buffer = 0;
};

// All pieces of this rank: values of parameters, "NAME"; optimizer state of the elements that it
// updates, "NAME/adam.m", and what it keeps once per parameter, of shape [1]. If a shard begins or
// ends inside a row, that row is a separate piece. REQUIRES: the store is allocated.
std::vector<LocalPiece> local_weights(const ParamStore& params);
std::vector<LocalPiece> held_states(const ParamStore& params, const Optimizer& optimizer);

// The pieces that this rank writes: over all ranks each element once. The ranks of a shard group
// divide the parameters of which all have a copy.
std::vector<LocalPiece> weights_to_save(const ParamStore& params);
std::vector<LocalPiece> written_states(const ParamStore& params, const Optimizer& optimizer);

}  // namespace bev
