// What the program knows about the terminal it writes to.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

#include "base/format.h"

namespace bev::app {

// The width for help and tables: that of the terminal behind stdout, 80 when the text goes
// elsewhere. Very long lines are hard to read, so at most 100.
size_t text_columns();

// Whether a person sees stderr as it is written: then lines that replace each other make sense.
bool stderr_is_terminal();

// The width of a terminal; 0 when the descriptor is none, or one that does not say.
size_t terminal_columns(int descriptor);

// Tells people something, on stderr. Unlike results, which must arrive, this may get lost: a full
// disk behind stderr ends no training.
template <class... Args>
void say(fmt::format_string<Args...> text, Args&&... args) {
  const std::string line = fmt::format(text, std::forward<Args>(args)...);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace bev::app
