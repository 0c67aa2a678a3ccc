// The list of deliberate faults, tests/mutants/list.txt: each must still be one that can be planted
// and a test that can fail. Whether the test does fail, tests/mutants/run.sh finds out.
#pragma once

#include "lint/checks.h"

namespace bev::lint {

Report check_mutant_list(const std::filesystem::path& root);

}  // namespace bev::lint
