// A training that its launcher has started again.
#pragma once

#include <optional>

#include "config/config.h"
#include "config/parse/origin.h"
#include "launch/rank_environment.h"

namespace bev::app {

// What a training continues from when its launcher starts it once more: with its own checkpoints,
// whatever checkpoint.load and checkpoint.finetune of the command say. Where there are none yet, as
// the command says; one without checkpoint.load then begins anew in the same folders. Changes
// nothing at the first start, nor where no checkpoints are wanted. `environment`: absent where this
// process is alone. Ranks that see the same folder come to the same.
void continue_after_restart(Config& config, Origins& origins,
                            const std::optional<RankEnvironment>& environment);

}  // namespace bev::app
