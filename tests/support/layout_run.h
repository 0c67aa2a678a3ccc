// A small training under any layout, on ranks that are threads, and what came out of it in logical
// coordinates: as if one rank had held everything.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/config.h"

namespace bev::test {

using LogicalTensors = std::map<std::string, std::vector<double>>;

struct Trained {
  std::vector<double> losses, norms;
  LogicalTensors values, grads;  // of the last step; gradients summed over ranks, not clipped
};

// Trains `steps` steps as config.parallel says; each rank in arenas of exactly the planned size,
// sending exactly the planned bytes. The samples are made up, and some of their tokens do not
// count: more in some samples than in others, and none in a few.
Trained train_layout(const Config& config, int steps);

// The largest ratio, over all tensors, of the norm of the difference to the norm of b's; and where.
// The bias of the keys is left out: softmax cancels it, so that its gradient is rounding noise.
struct Difference {
  double ratio = 0;
  std::string where;
};
Difference difference(const LogicalTensors& a, const LogicalTensors& b);

}  // namespace bev::test
