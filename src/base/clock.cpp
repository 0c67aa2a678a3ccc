#include "base/clock.h"

#include <time.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>

namespace bev {

namespace {

// Between the start of the machine and that of this process.
std::optional<double> start_of_process() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // The name of the program, in brackets, may hold anything.
  const size_t name = text.rfind(')');
  if (name == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name + 1));
  constexpr int kBefore = 19;  // fields between the name and the start
  std::string field;
  for (int i = 0; i < kBefore; ++i) fields >> field;
  double ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

double process_seconds() {
  static const double first = seconds_now();
  static const std::optional<double> start = start_of_process();
  timespec now{};
  if (!start || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return seconds_now() - first;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - *start;
}

}  // namespace bev
