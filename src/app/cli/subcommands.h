// A verb that has parts, as `bevatron checkpoint list`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/cli/verb.h"

namespace bev::app {

struct VerbParts {
  std::string_view name;  // of the verb
  std::span<const Verb> parts;
  std::string_view arguments;  // what follows a part, in the usage line
  std::string_view footer;     // the last lines of the overview, with their end
};

// Runs the part that the first argument names, or prints the overview. Usage error where there is
// no such part.
int run_part(const VerbParts& verb, std::span<const std::string> args);

}  // namespace bev::app
