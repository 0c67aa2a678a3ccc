#include "base/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <ctime>
#include <string>

#include "base/clock.h"
#include "base/process_identity.h"
#include "base/system_file.h"

namespace bev {

double process_seconds() {
  static const double first = seconds_now();
  static const int64_t start = own_process().start;
  timespec now{};
  if (start <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return seconds_now() - first;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         static_cast<double>(start) / ticks;
}

double resident_bytes() {
  const std::string sizes = system_line("/proc/self/statm");
  const size_t blank = sizes.find(' ');
  if (blank == std::string::npos) return 0;
  int64_t pages = 0;
  std::from_chars(sizes.data() + blank + 1, sizes.data() + sizes.size(), pages);
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void raise_open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace bev
