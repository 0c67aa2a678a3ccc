#include "base/process_identity.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "base/descriptor.h"
#include "base/format.h"
#include "base/system_file.h"

namespace bev {

namespace {

// The first bytes of a file of /proc, which has no size; empty if it cannot be read.
std::string first_bytes(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.is_open() ? read_up_to(file.get(), 4096).value_or("") : "";
}

std::string stat_line(const std::string& process) {
  return first_bytes(format("/proc/{}/stat", process));
}

int64_t start_in(std::string_view line) {
  constexpr int kStartTime = 22;
  const std::string_view digits = stat_field(line, kStartTime);
  int64_t start = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), start);
  return start;
}

// The start of the machine and the container: pids are comparable if both are equal.
std::string own_machine() {
  const std::string boot = system_line("/proc/sys/kernel/random/boot_id");
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size());
  if (boot.empty() || length <= 0) return {};
  return format("{} {}", boot, std::string_view(space.data(), static_cast<size_t>(length)));
}

}  // namespace

std::string_view stat_field(std::string_view line, int field) {
  const size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos) return {};
  if (field < 3) return {};
  std::string_view rest = line.substr(name_end + 1);
  for (int at = 3;; ++at) {
    const size_t begin = rest.find_first_not_of(" \n");
    if (begin == std::string_view::npos) return {};
    rest.remove_prefix(begin);
    const size_t end = std::min(rest.find_first_of(" \n"), rest.size());
    if (at == field) return rest.substr(0, end);
    rest.remove_prefix(end);
  }
}

ProcessIdentity own_process() {
  return {.pid = ::getpid(), .start = start_in(stat_line("self")), .machine = own_machine()};
}

ProcessState life_of(const ProcessIdentity& process) {
  constexpr int64_t kMostPid = int64_t{1} << 30;
  if (process.pid <= 0 || process.pid > kMostPid || process.start <= 0 || process.machine.empty() ||
      process.machine != own_machine())
    return ProcessState::Unknown;
  const std::string line = stat_line(format("{}", process.pid));
  if (!line.empty()) {
    const std::string_view state = stat_field(line, 3);
    // A zombie has ended; its parent has not waited for it.
    const bool has_ended = state == "Z" || state == "X";
    return start_in(line) == process.start && !has_ended ? ProcessState::Alive : ProcessState::Gone;
  }
  // Some systems hide the processes of others.
  const bool exists = ::kill(static_cast<pid_t>(process.pid), 0) == 0 || errno == EPERM;
  return exists ? ProcessState::Unknown : ProcessState::Gone;
}

}  // namespace bev
