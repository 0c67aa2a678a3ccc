// Chooses the sub-command. Prints only what was asked for: overview, version, help.
#pragma once

#include <span>
#include <string>

#include "app/cli/verb.h"

namespace bev::app {

// `args` without the program's name. Returns the exit code; throws Error (an unknown verb is a
// Usage error that names the nearest).
int dispatch(std::span<const Verb> verbs, std::span<const std::string> args);

// What `bevatron help` prints.
std::string overview(std::span<const Verb> verbs);

}  // namespace bev::app
