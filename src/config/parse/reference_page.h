// The page that documents the configuration, docs/configuration.md, made from the descriptions.
#pragma once

#include <string>

namespace bev {

// Markdown: every field by section, then the flags of Megatron-LM that set none.
std::string configuration_page();

}  // namespace bev
