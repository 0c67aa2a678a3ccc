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

// What --help prints.
std::string help_text(const ConfigVerb& verb, size_t columns);

// Verbs that take a configuration and have no use for its model.

// Gives what a model and a training must have and nobody has given some value that is legal.
// train.sequence is left as it is.
void fill_required_fields(Config& config);

}  // namespace bev::app
