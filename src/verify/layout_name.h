// A layout as people type it: "tp2.sp.pp2.dp2.zero1.chunks2.gpipe".
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"

namespace bev {

// Parts in any order, each at most once, with dots or commas between; "one" or nothing is one rank.
// Anything else is a Usage error that says what is legal. What the parts mean together is not
// checked here.
ParallelConfig parse_layout(std::string_view text);

// What parse_layout() reads back to the same. REQUIRES: whole copies of the model, no context
// ranks.
std::string layout_text(const ParallelConfig& layout);

// What is legal, in one sentence.
std::string layout_parts();

}  // namespace bev
