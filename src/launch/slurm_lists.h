// The two notations in which Slurm writes lists into the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bev {

// "node[01-03,7],gpu-b2" -> node01, node02, node03, node7, gpu-b2. Several brackets in one name are
// all combinations, the last one fastest. At most 65,536 hosts. What is written otherwise is a
// Usage error that quotes it and says where; `variable` is where the text was found.
std::vector<std::string> slurm_hosts(std::string_view list, std::string_view variable);

// "2(x3),1" -> 2, 2, 2, 1: tasks by node. The same limits and errors.
std::vector<int> slurm_counts(std::string_view list, std::string_view variable);

}  // namespace bev
