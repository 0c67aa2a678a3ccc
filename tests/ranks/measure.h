// How fast this machine's processes exchange tensors.
#pragma once

#include <cstdint>

#include "ranks/job.h"

namespace bev::test {

// Sums of `megabytes` and of 64 bytes, ours beside the library's own; the first rank prints.
void measure(Rank& self, int64_t megabytes);

}  // namespace bev::test
