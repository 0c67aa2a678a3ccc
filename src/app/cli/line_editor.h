// Lines that a person types, with editing and history; or that a pipe brings.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "app/cli/signals.h"

namespace bev::app {

class LineEditor {
 public:
  // Edits where both are terminals and the program is built with libedit; elsewhere lines are read
  // as they come, and `sign`, which stands in front of what is typed, is shown on a terminal only.
  // REQUIRES: all outlive this.
  LineEditor(std::FILE* in, std::FILE* out, std::string sign, const Interrupt& interrupt);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Outcome { Line, Interrupted, Closed };
  struct Entry {
    Outcome outcome = Outcome::Closed;
    std::string text{};  // of the line, or of what was typed before the interruption
  };
  Entry read();

  static bool can_edit();

 private:
  class Editing;
  Entry read_plain();

  std::FILE* in_;
  std::FILE* out_;
  std::string sign_;
  const Interrupt& interrupt_;
  std::unique_ptr<Editing> editing_;
};

}  // namespace bev::app
