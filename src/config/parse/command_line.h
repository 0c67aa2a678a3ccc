// The arguments after the verb: one optional file or script of Megatron-LM, flags of fields,
// Megatron's flags, and the flags a verb declares for itself.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/parse/field.h"

namespace bev {

// A flag of a verb that is no part of the configuration.
struct VerbFlag {
  std::string_view name;   // "--json"
  std::string_view value;  // what its value is called in the help, "FILE"; empty: it takes none;
                           // "[FILE]": it may stand alone
  std::string_view help;
  std::string_view sets{};  // the field that it is this verb's word for; empty: none
};

// By name, with the value ("" where the flag takes none).
using VerbFlagValues = std::map<std::string, std::string, std::less<>>;

struct MegatronScript;

struct CommandLine {
  std::string file;                        // empty: none given
  const MegatronScript* script = nullptr;  // of Megatron-LM; null: none named
  std::vector<Assignment> assignments;
  VerbFlagValues own;
  std::vector<std::string> notes;  // one line per flag that has no effect or a new name
};

// Never throws for anything the arguments hold: everything wrong goes into `findings`.
CommandLine parse_command_line(std::span<const std::string> args, std::span<const VerbFlag> own,
                               Findings& findings);

}  // namespace bev
