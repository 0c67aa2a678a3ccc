// Verbs that take a configuration and have no use for its model.
#pragma once

#include "config/config.h"

namespace bev::app {

// Gives what a model and a training must have and nobody has given some value that is legal.
// train.sequence is left as it is.
void fill_in_model(Config& config);

}  // namespace bev::app
