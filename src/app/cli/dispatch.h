// Chooses the sub-command. Prints only what was asked for: overview, version, help.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/cli/verbs.h"

namespace bev::app {

// `args` without the program's name. Returns the exit code; throws Error (an unknown verb is a
// Usage error that names the nearest).
int dispatch(std::span<const Verb> verbs, std::span<const std::string> args);

// The exit codes of the program, for the overview and the manual page.
struct ExitCode {
  int code;
  std::string_view meaning;
};
std::span<const ExitCode> exit_codes();

// What `bevatron help` prints.
std::string overview(std::span<const Verb> verbs);

// A verb that has parts, as `bevatron checkpoint list`.

struct Subcommands {
  std::string_view name;  // of the verb
  std::span<const Verb> parts;
  std::string_view arguments;  // what follows a part, in the usage line
  std::string_view footer;     // the last lines of the overview, with their end
};

// Runs the part that the first argument names, or prints the overview. Usage error where there is
// no such part.
int run_part(const Subcommands& verb, std::span<const std::string> args);

// Completion of command lines by the shell.

// What `bevatron completion` prints. Completes verbs, choices, presets, files, the flags a verb has
// for itself and, where it reads a configuration, those of fields and of Megatron-LM. What a verb
// has and reads, the script asks from its help. Usage error for a shell other than bash and zsh.
std::string completion_script(std::span<const Verb> verbs, std::string_view shell);

}  // namespace bev::app
