// What a terminal is told apart from a file by.
#pragma once

#include <cstddef>

namespace bev::app {

bool is_terminal(int descriptor);

// The width of the terminal; 0 when the descriptor is none, or one that does not say.
size_t terminal_columns(int descriptor);

}  // namespace bev::app
