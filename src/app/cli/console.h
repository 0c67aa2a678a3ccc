// Console of a run: log lines on stderr, records on stdout, both also in the log file of the rank.
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

  // A log line, on stderr.
  template <class... Args>
  void log(fmt::format_string<Args...> text, Args&&... args) const {
    log_text(fmt::format(text, std::forward<Args>(args)...));
  }
  // A record of the run, on stdout: a line without its newline. A failed write does not end the
  // run; main checks stdout before it exits.
  void print_record(const std::string& line) const;
  // An alert, printed by every rank. `console`: optional.
  static void alert(const Console* console, int rank, const std::string& text);
  // To the log file only.
  void log_to_file(const std::string& text) const;

 private:
  void log_text(const std::string& text) const;

  bool prints_;
  int file_ = -1;
};

// Width for help and tables: the width of the terminal, at most 100; 80 if stdout is not a
// terminal.
size_t text_columns();

// True if stderr is a terminal, where a line can replace the one before it.
bool stderr_is_terminal();

// Width of a terminal; 0 if the descriptor is not a terminal or its width is unknown.
size_t terminal_columns(int descriptor);

// Prints to stderr. Write errors are ignored: a full disk does not end a run.
template <class... Args>
void print_stderr(fmt::format_string<Args...> text, Args&&... args) {
  const std::string line = fmt::format(text, std::forward<Args>(args)...);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace bev::app
