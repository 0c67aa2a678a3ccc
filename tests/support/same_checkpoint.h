// Whether two checkpoints hold the same training.
#pragma once

#include "checkpoint/checkpoint_reader.h"

namespace bev::test {

// Whether both have the same tensors, bit for bit.
bool same_bits(const CheckpointReader& a, const CheckpointReader& b);

// Whether both go on with the same step, sample, learning rate, loss scale and random numbers.
bool same_position(const Manifest& a, const Manifest& b);

}  // namespace bev::test
