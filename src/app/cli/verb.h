// A sub-command of the program.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bev::app {

struct Verb {
  std::string_view name;
  std::string_view summary;  // one line of the overview
  // Gets the arguments after the verb and returns the exit code. Throws Error; main prints it.
  int (*run)(std::span<const std::string> args);
  std::string_view parts{};  // words of which one must follow, with blanks between
};

}  // namespace bev::app
