// The model as one rank would hold it.
#pragma once

#include <memory>

#include "pipeline/rank_model.h"

namespace bev {

// The same model on one rank: the vocabulary keeps its padding.
Config on_one_rank(Config config);

// Gathers what all ranks hold at rank 0, on its device; the others get null. All ranks call it
// together. `whole`: on_one_rank() of the model's configuration, must outlive the result.
std::unique_ptr<PlacedModel> gather_model(const Config& whole, PlacedModel& mine, Exec& ex);

}  // namespace bev
