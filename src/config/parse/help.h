// The help of a verb, generated from the description of the configuration.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/parse/command_line.h"

namespace bev {

// Text broken between words into lines of at most `columns`, each after the first indented.
std::string wrap(std::string_view text, size_t columns, size_t indent);

// The flags that a verb declares for itself.
std::string own_flags_help(std::span<const VerbFlag> own, size_t columns);

// All sections and fields: name, default, range or choices, Megatron's flags, what it means.
std::string fields_help(size_t columns);

// The page that documents the configuration, docs/configuration.md, made from the descriptions.

// Markdown: every field by section, then the flags of Megatron-LM that set none.
std::string configuration_page();

}  // namespace bev
