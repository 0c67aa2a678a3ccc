// TOML files: [section] and key = value, nothing deeper. The parser is included only in toml.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/parse/field.h"

namespace bev {

// Files are written by people; a larger one is a mistake or an attack.
inline constexpr size_t kMaxTomlBytes = size_t{1} << 20;

// The values of a file, each with file and line. Everything wrong goes into `findings`; what could
// be read is still returned. Never throws for anything the file holds.
std::vector<Assignment> read_toml(const std::filesystem::path& path, Findings& findings);

// The same for a text; `name` stands for the file in messages.
std::vector<Assignment> parse_toml(std::string_view text, std::string_view name,
                                   Findings& findings);

// The complete effective configuration as TOML.

// Every field, each with a comment that says where its value came from. Loading the text gives the
// same configuration.
std::string print_config(const Config& config, const Origins& origins = {});

}  // namespace bev
