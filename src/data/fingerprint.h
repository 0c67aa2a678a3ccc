// What tells two sets of token files apart without reading all of them.
#pragma once

#include <string>

#include "data/training_data.h"

namespace bev {

// A line for each file that the data is read from: its size and a hash of its beginning and its
// end. Files that cannot be read are Data errors.
std::string fingerprint(const TrainingData& data);

}  // namespace bev
