// Identity of a process beyond its pid, which another process may use later, and whether it is
// alive.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bev {

// One process among all that ever ran.
struct ProcessIdentity {
  int64_t pid = 0;
  int64_t start = 0;  // in ticks since the machine was started: distinguishes processes that had
                      // the same pid
  std::string machine{};  // differs if pids cannot be compared: another machine, another start
                          // of it, another container

  bool operator==(const ProcessIdentity&) const = default;
};

// This one.
ProcessIdentity own_process();

enum class ProcessState : uint8_t {
  Alive,
  Gone,
  Unknown,  // it cannot be seen from here
};

ProcessState life_of(const ProcessIdentity& process);

// The field of a line of /proc/PID/stat, counted from 1 as in proc(5); empty if there is none.
// The second is a name of any characters, in brackets.
std::string_view stat_field(std::string_view line, int field);

}  // namespace bev
