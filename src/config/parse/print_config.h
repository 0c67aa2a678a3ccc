// The complete effective configuration as TOML.
#pragma once

#include <string>

#include "config/config.h"
#include "config/parse/origin.h"

namespace bev {

// Every field, each with a comment that says where its value came from. Loading the text gives the
// same configuration.
std::string print_config(const Config& config, const Origins& origins = {});

}  // namespace bev
