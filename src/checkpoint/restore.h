// From a checkpoint into the memory of a rank, whatever layout and precision wrote it.
#pragma once

#include <string>

#include "base/function_ref.h"
#include "checkpoint/checkpoint_reader.h"
#include "optim/optimizer.h"
#include "param/param_store.h"

namespace bev {

// Fills the parameters and what the optimizer keeps. Master weights that the checkpoint does not
// have are its weights; weights of another precision are its master weights, rounded. A tensor that
// is missing or has another shape is a Data error. Only in the number of padded rows behind `vocab`
// tokens may shapes differ: rows the file does not have become zeros. REQUIRES: the store is
// allocated.
void restore_state(const CheckpointReader& stored, ParamStore& params, const Optimizer& optimizer,
                   int64_t vocab);

// The weights alone: master weights follow them, the rest of the optimizer's state stays as it is.
void restore_weights(const CheckpointReader& stored, ParamStore& params, const Optimizer& optimizer,
                     int64_t vocab);
// The same of a checkpoint with other names. `stored_name`: of a parameter, empty if it keeps its
// values.
void restore_weights(const CheckpointReader& stored, ParamStore& params, const Optimizer& optimizer,
                     int64_t vocab,
                     FunctionRef<std::string(const std::string& parameter)> stored_name);

}  // namespace bev
