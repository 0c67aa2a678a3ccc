// The model as one rank would hold it.
#pragma once

#include <memory>

#include "pipeline/rank_model.h"

namespace bev {

// The same model on one rank: the vocabulary keeps its padding.
Config single_rank_config(Config config);

// Gathers what all ranks hold at rank 0, on its device; the others get null. All ranks call it
// together. `whole`: single_rank_config() of the model's configuration, must outlive the result.
std::unique_ptr<RankModel> gather_model(const Config& whole, RankModel& mine, Exec& ex);

}  // namespace bev
