#include "launch/inherited_variables.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace bev {

namespace {

// What ranks must not believe: a launcher above us counts us, not them.
bool is_of_another_launcher(std::string_view variable) {
  constexpr std::array<std::string_view, 6> kPrefixes{
      "OMPI_", "PMIX_", "PMI_", "MPI_LOCALRANK", "MPI_LOCALNRA", "TORCHELASTIC_"};
  constexpr std::array<std::string_view, 11> kNames{
      "RANK",         "LOCAL_RANK",       "WORLD_SIZE",      "LOCAL_WORLD_SIZE",
      "GROUP_RANK",   "GROUP_WORLD_SIZE", "MASTER_ADDR",     "MASTER_PORT",
      "BEVATRON_JOB", "BEVATRON_SECRET",  "BEVATRON_RESTART"};
  const std::string_view name = variable.substr(0, variable.find('='));
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> inherited_variables() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!is_of_another_launcher(*variable)) variables.emplace_back(*variable);
  return variables;
}

}  // namespace bev
