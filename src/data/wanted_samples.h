// How many samples a whole run takes of each split, as Megatron-LM counts them: it decides how many
// epochs are shuffled together.
#pragma once

#include <array>

#include "config/config.h"

namespace bev {

// Training, validation, test. REQUIRES: a checked configuration.
std::array<int64_t, 3> wanted_samples(const Config& config);

}  // namespace bev
