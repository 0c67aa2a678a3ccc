// The loss of rows that hold all classes.
#pragma once

#include "ops/cross_entropy.h"

namespace bev::cuda {

// REQUIRES: c.stats is absent.
void whole_row_loss(Exec& ex, const ops::CrossEntropy& c);

}  // namespace bev::cuda
