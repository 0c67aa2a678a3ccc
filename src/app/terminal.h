// What the program knows about the terminal it writes to.
#pragma once

#include <cstddef>

namespace bev::app {

// The width for help and tables: that of the terminal behind stdout, 80 when the text goes
// elsewhere. Very long lines are hard to read, so at most 100.
size_t text_columns();

// Whether a person sees stderr as it is written: then lines that replace each other make sense.
bool stderr_is_terminal();

// The width of a terminal; 0 when the descriptor is none, or one that does not say.
size_t terminal_columns(int descriptor);

}  // namespace bev::app
