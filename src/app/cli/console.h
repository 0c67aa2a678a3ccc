// Where a run says things: to people, where its rank is one that prints, and into the file of the
// rank, where it has one.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "base/format.h"

namespace bev::app {

class Console {
 public:
  // `file`: appended to, its folders are made; empty: none. A file that cannot be opened is a Data
  // error.
  explicit Console(bool prints, const std::filesystem::path& file = {});
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool prints() const { return prints_; }

  // News, on stderr.
  template <class... Args>
  void log(fmt::format_string<Args...> text, Args&&... args) const {
    say_text(fmt::format(text, std::forward<Args>(args)...));
  }
  // The record of the run, on stdout: a line without its end. A log that cannot be written ends no
  // training; main looks at the end.
  void print_record(const std::string& line) const;
  // What must be seen whether or not the rank prints; `voice` may be absent.
  static void alert(const Console* voice, int rank, const std::string& text);
  // Into the file only.
  void log_to_file(const std::string& text) const;

 private:
  void say_text(const std::string& text) const;

  bool prints_;
  int file_ = -1;
};

// What the program knows about the terminal it writes to.

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
