// Input and result files of a verb; "-" is stdin or stdout.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace bev::app {

class WholeInput {
 public:
  explicit WholeInput(const std::string& path);

  // Lives as long as this.
  std::string_view text() const;
  // For messages.
  const std::string& name() const { return name_; }

 private:
  std::string name_, piped_;
  std::optional<MappedFile> file_;
};

// Where results go as they come.

class ResultFile {
 public:
  // A file, or stdout where the path is empty. Data error when the file cannot be written. What it
  // held stays until the first result is there; an error before that leaves no new file.
  explicit ResultFile(std::string path);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  bool is_stdout() const { return path_.empty(); }
  // At once: others can read it. Data error when a file cannot be written; for stdout main looks at
  // the end.
  void write(std::string_view text);

 private:
  void empty_file() const;

  std::string path_;
  int descriptor_ = -1;
  bool is_new_ = false;  // there was no such file before
  bool has_result_ = false;
};

}  // namespace bev::app
