// How far a long job has come, for a person at a terminal.
#pragma once

#include <string>

namespace bev::app {

// One line on stderr that replaces itself, with share, rate and the time left. Nothing is written
// when stderr is no terminal, or in the first two seconds: short jobs are silent. The line is taken
// away at the end.
class Progress {
 public:
  // `activity`: "writing corpus.txt". `total` bytes are to be done.
  Progress(std::string activity, double total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap: may be called thousands of times a second.
  void at(double done);

 private:
  std::string activity_;
  double total_, begun_, next_;
  bool live_, shown_ = false;
};

// The text of the line.
std::string progress_line(const std::string& activity, double done, double total, double seconds);

}  // namespace bev::app
