// The list of planted faults, tests/mutants/list.txt. Every fault must still be one that can be
// planted, with a test that exists. tests/mutants/run.sh finds out whether the test fails.
#pragma once

#include "lint/checks.h"

namespace bev::lint {

Report check_mutant_list(const std::filesystem::path& root);

// Plants the named fault into the tree below root and returns the path of the changed file, from
// the root. Throws std::runtime_error if the list has no such fault or it cannot be planted.
std::string plant_fault(const std::filesystem::path& root, std::string_view name);

}  // namespace bev::lint
