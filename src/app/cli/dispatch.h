// Selects the verb or sub-command; prints overview, help and shell completion.
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

// The output of `bevatron help`.
std::string overview(std::span<const Verb> verbs);

// A verb with sub-commands, such as `bevatron checkpoint list`.
struct Subcommands {
  std::string_view name;  // of the verb
  std::span<const Verb> parts;
  std::string_view arguments;  // what follows a part, in the usage line
  std::string_view footer;     // the last lines of the overview, with their end
};

// Runs the sub-command that the first argument names, or prints the overview. Usage error if the
// sub-command is unknown.
int run_part(const Subcommands& verb, std::span<const std::string> args);

// The output of `bevatron completion`. The script completes verbs, choices, presets, files and the
// flags of a verb. For a verb that reads a configuration it also completes the configuration fields
// and Megatron-LM flags. It takes the flags from the verb's help. Usage error if the shell is
// neither bash nor zsh.
std::string completion_script(std::span<const Verb> verbs, std::string_view shell);

}  // namespace bev::app
