// The environment of a launcher, as far as its ranks may have it.
#pragma once

#include <string>
#include <vector>

namespace bev {

// NAME=VALUE, without what launchers tell the processes that they start.
std::vector<std::string> inherited_variables();

}  // namespace bev
