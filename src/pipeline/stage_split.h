// Pipeline stages: which parts of the model each one runs.
#pragma once

#include <cstdint>
#include <vector>

#include "config/config.h"
#include "model/stage.h"

namespace bev {

// The parts of a stage, and the blocks among them.
struct StageParts {
  PartRange parts;
  int64_t first_block = 0, blocks = 0;
  bool is_first = true, is_last = true;  // of the model
};

// The stages of a model, by their number in the layout. The first and the last have as many blocks
// as the configuration says, the others of a segment about the same number each. Parts between two
// blocks of a segment are on the stage of the first one.
std::vector<StageParts> split_stages(const ModelSpec& spec, const Config& config);

}  // namespace bev
