// Which layers a stage holds.
#pragma once

#include "model/stage.h"

namespace bev {

// The layers of stage `stage` of layout.stages(): the first and the last have what the
// configuration says, the rest is divided as evenly as possible.
StageRange stage_range(const Config& config, const ParallelLayout& layout, int stage);

}  // namespace bev
