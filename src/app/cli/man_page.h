// The manual page of the program, made from the table of verbs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/cli/verbs.h"

namespace bev::app {

// Text as roff input: characters that roff interprets or prints as another character are escaped.
// A line that starts with a control character gets a zero-width character in front of it.
std::string roff_text(std::string_view text);

// bevatron.1 in the man macro package: what `bevatron help man` prints. The page has no date, so
// the same program always prints the same page.
std::string man_page(std::span<const Verb> verbs);

}  // namespace bev::app
