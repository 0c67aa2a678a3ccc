// Completion of command lines by the shell.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/cli/verb.h"

namespace bev::app {

// What `bevatron completion` prints. Completes verbs, choices, presets, files, the flags a verb has
// for itself and, where it reads a configuration, those of fields and of Megatron-LM. What a verb
// has and reads, the script asks from its help. Usage error for a shell other than bash and zsh.
std::string completion_script(std::span<const Verb> verbs, std::string_view shell);

}  // namespace bev::app
