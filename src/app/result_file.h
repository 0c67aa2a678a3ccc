// Where results go as they come.
#pragma once

#include <string>
#include <string_view>

namespace bev::app {

class ResultFile {
 public:
  // A file, which is made or emptied; stdout where the path is empty. Data error when it cannot be
  // opened.
  explicit ResultFile(std::string path);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  bool is_stdout() const { return path_.empty(); }
  // At once: others can read it. Data error when a file cannot be written; for stdout main looks at
  // the end.
  void write(std::string_view text);

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace bev::app
