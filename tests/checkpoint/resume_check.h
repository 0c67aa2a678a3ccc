// The property of a resumed run that all others rest on.
#pragma once

#include "checkpoint/checkpointed_run.h"

namespace bev::test {

// Half of the iterations, saved, and continued for the other half: the tensors, the positions and
// what each iteration reported are those of the undisturbed run, whose outcome is returned.
RunOutcome expect_continues_bit_for_bit(const Config& config);

}  // namespace bev::test
