// Where the time of one traced step goes, by class of op.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/trace.h"

namespace bev {

struct OpTime {
  std::string op;
  int64_t calls = 0;
  double seconds = 0;
};

struct ClassTime {
  std::string_view name;
  std::vector<OpTime> ops;  // the longest first
  int64_t calls() const;
  double seconds() const;
};

struct StepBreakdown {
  std::vector<ClassTime> classes;  // those that occur
  double total = 0;                // seconds from the begin of the first op to the end of the last
  // What of it lies in no op: waiting for the host, copies and the timers themselves.
  double gaps() const;
};

// The class of an op; "other" for one that nobody has put into a class.
std::string_view class_of(std::string_view op);

// `spans`: those of one stream, which follow each other.
StepBreakdown break_down(std::span<const OpSpan> spans);

}  // namespace bev
