// Published model shapes by name. A preset sets the model and a sequence length to train it with;
// files and flags override single values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

struct PresetSetting {
  std::string_view field;  // "model.layers"
  std::string value;       // as on the command line
};

struct Preset {
  std::string_view name;
  std::string summary;  // "24 layers, width 1024, 16 heads; GPT-2 (Radford et al. 2019)"
  std::vector<PresetSetting> settings;
};

// In the order they are listed to people.
const std::vector<Preset>& presets();

// Null when there is none of that name.
const Preset* find_preset(std::string_view name);

// A line per preset, for --list-presets.
std::string preset_list();

}  // namespace bev
