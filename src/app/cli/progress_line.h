// Progress of a long task with a known end, for people: one line that replaces itself on a terminal
// once the task has lasted two seconds; nothing elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace bev::app {

class ProgressLine {
 public:
  // "tokenizing", 1000000, "bytes". A total below 0 is not known.
  ProgressLine(std::string_view task, int64_t total, std::string_view unit);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Cheap: may be called thousands of times a second.
  void update(int64_t done);
  // `more` is asked only when the line is shown, and stands at its end.
  void update(int64_t done, FunctionRef<std::string()> more);
  double seconds() const;

 private:
  std::string task_, unit_;
  int64_t total_;
  bool live_;
  double start_, shown_at_;
  bool shown_ = false;
};

// The text of the line.
std::string progress_text(std::string_view task, int64_t done, int64_t total, std::string_view unit,
                          double seconds);

}  // namespace bev::app
