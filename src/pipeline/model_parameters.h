// The parameters that a configuration's model has, without a model.
#pragma once

#include <vector>

#include "config/config.h"
#include "param/param_spec.h"

namespace bev {

// Each once, in the order of the model. REQUIRES: the configuration asks for one rank.
std::vector<ParamSpec> model_parameters(const Config& config);

}  // namespace bev
