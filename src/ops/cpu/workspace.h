// The memory each thread of a cpu device holds for its kernels: packed panels, a row of scores.
#pragma once

#include <cstddef>

namespace bev::cpu {

// What the neediest kernel asks for, per thread.
size_t workspace_bytes();

}  // namespace bev::cpu
