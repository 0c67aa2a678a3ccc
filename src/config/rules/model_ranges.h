// The bounds of single fields, for a model that came neither from flags nor from a TOML file.
#pragma once

#include <string>

#include "config/model_config.h"

namespace bev {

// Data error that names `source` and the first field out of its bounds.
void check_model_ranges(const ModelConfig& model, const std::string& source);

}  // namespace bev
