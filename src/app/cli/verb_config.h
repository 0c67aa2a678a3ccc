// The checked configuration of a verb, and the two flags every such verb has: --help and
// --print-config.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/parse/load.h"

namespace bev::app {

struct ConfigVerb {
  std::string_view name;          // "train"
  std::string_view summary;       // what it does, a sentence or two
  std::span<const VerbFlag> own;  // flags besides the configuration
  Purpose purpose = Purpose::Plan;
  CompleteConfig complete = nullptr;
  int launched = 0;    // ranks that a launcher started, each a process; 0: it started none
  bool prints = true;  // notes, and what --help and --print-config ask for
};

// The configuration that the arguments describe. Empty when --help or --print-config asked for
// text: it has been printed and the verb is done. Notes go to stderr. All problems are one Usage
// error.
std::optional<LoadedConfig> config_for(const ConfigVerb& verb, std::span<const std::string> args);

// The output of --help.
std::string help_text(const ConfigVerb& verb, size_t columns);

// For verbs that take a configuration but do not use its model: gives every required field without
// a value a valid one. Leaves train.sequence as it is.
void fill_required_fields(Config& config);

}  // namespace bev::app
