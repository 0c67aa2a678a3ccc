// Where a run says things: to people, where its rank is one that prints, and into the file of the
// rank, where it has one.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/format.h"

namespace bev::app {

class Voice {
 public:
  // `file`: appended to, its folders are made; empty: none. A file that cannot be opened is a Data
  // error.
  explicit Voice(bool prints, const std::filesystem::path& file = {});
  ~Voice();
  Voice(const Voice&) = delete;
  Voice& operator=(const Voice&) = delete;

  bool prints() const { return prints_; }

  // News, on stderr.
  template <class... Args>
  void tell(fmt::format_string<Args...> text, Args&&... args) const {
    say_text(fmt::format(text, std::forward<Args>(args)...));
  }
  // The record of the run, on stdout: a line without its end. A log that cannot be written ends no
  // training; main looks at the end.
  void record(const std::string& line) const;
  // What must be seen whether or not the rank prints; `voice` may be absent.
  static void alert(const Voice* voice, int rank, const std::string& text);
  // Into the file only.
  void keep(const std::string& text) const;

 private:
  void say_text(const std::string& text) const;

  bool prints_;
  int file_ = -1;
};

}  // namespace bev::app
