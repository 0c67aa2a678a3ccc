// A configuration from defaults, a preset, a file and the command line: the later wins, wherever it
// stands among the arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/parse/command_line.h"
#include "config/rules/config_check.h"

namespace bev {

struct LoadedConfig {
  Config config;
  Origins origins;                 // of every field that is not a default
  VerbFlagValues own;              // the verb's own flags
  std::vector<std::string> notes;  // for the user, one line each

  bool has(std::string_view own_flag) const { return own.find(own_flag) != own.end(); }
  // The value of one of the verb's own flags, or `otherwise` when it was not given.
  std::string own_text(std::string_view own_flag, std::string_view otherwise = "") const;
};

// Fills in what a verb does not need and the user has left out, before the rules ask for it.
using CompleteConfig = void (*)(Config& config);

// Reads and checks. `automatic` is what device.kind auto means on this machine. REQUIRES: args do
// not contain the verb. All problems are thrown together as one Usage error.
LoadedConfig load(std::span<const std::string> args, std::span<const VerbFlag> own = {},
                  Purpose purpose = Purpose::Plan, CompleteConfig complete = nullptr,
                  DeviceKind automatic = DeviceKind::Cpu);

// The same without the throw: problems go into `findings`, cross-field rules included.
LoadedConfig load_unchecked(std::span<const std::string> args, std::span<const VerbFlag> own,
                            Purpose purpose, Findings& findings, CompleteConfig complete = nullptr,
                            DeviceKind automatic = DeviceKind::Cpu);

// The verb's own flag as it is needed: Usage error when its value is no integer in [min, max].
int64_t own_integer(const LoadedConfig& loaded, std::string_view flag, int64_t otherwise,
                    int64_t min, int64_t max);

}  // namespace bev
