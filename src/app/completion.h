// Completion of command lines by the shell.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/verb.h"

namespace bev::app {

// What `bevatron completion` prints. Completes verbs, flags of fields and of Megatron-LM, choices,
// presets, the verb's own flags (asked from its help when they are needed) and files. Usage error
// for a shell other than bash and zsh.
std::string completion_script(std::span<const Verb> verbs, std::string_view shell);

}  // namespace bev::app
