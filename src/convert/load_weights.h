// Filling a store with weights from anywhere.
#pragma once

#include "convert/weight_source.h"
#include "param/param_store.h"

namespace bev {

// Each rank reads the pieces it holds. Where the store has no memory, only whether all is there is
// checked. Master weights of an optimizer are not touched: refresh them afterwards.
void load_weights(WeightSource& source, ParamStore& params);

}  // namespace bev
