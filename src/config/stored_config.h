// A configuration as a checkpoint holds it: every field by its path, written as in a TOML file.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "config/config.h"

namespace bev {

using StoredConfig = std::map<std::string, std::string>;

StoredConfig stored_config(const Config& config);

// The inverse. Paths that this version does not know are left out, and fields that the stored one
// does not have keep their defaults. Data error that names `source` when a value is nonsense.
Config config_from(const StoredConfig& stored, std::string_view source);

}  // namespace bev
