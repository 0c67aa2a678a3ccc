// What all ranks of a job must have alike (configuration, data, program), compared before the first
// step.
#pragma once

#include <cstddef>
#include <string>

#include "coordination/coordination_client.h"

namespace bev {

// All ranks call it together. `here` of the ranks is compared by hash; where it differs from the
// first rank's, every rank throws a Usage error with the lines that differ. `what`: "the
// configuration".
void require_same_on_ranks(CoordinationClient& control, const std::string& what,
                           const std::string& here);

// The lines of `other` that `first` does not have, and the other way round, at most `most` of each:
// "  - lr = 0.1\n  + lr = 0.2".
std::string line_difference(const std::string& first, const std::string& other, size_t most);

}  // namespace bev
