// Processes as others see them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bev {

// One process among all that ever ran.
struct ProcessIdentity {
  int64_t pid = 0;
  int64_t start = 0;      // in ticks since the machine was started: tells apart who had a pid
  std::string machine{};  // differs where pids cannot be compared: another machine, another start
                          // of it, another container

  bool operator==(const ProcessIdentity&) const = default;
};

// This one.
ProcessIdentity own_process();

// Seconds since this one was started; where the system does not tell, since the first call.
double process_seconds();

enum class ProcessState : uint8_t {
  Alive,
  Gone,
  Unknown,  // it cannot be seen from here
};

ProcessState life_of(const ProcessIdentity& process);

// The field of a line of /proc/PID/stat, counted from 1 as in proc(5); empty where there is none.
// The second is a name of any characters, in brackets.
std::string_view stat_field(std::string_view line, int field);

// Memory of this process that is in use, in bytes; 0 where the system does not say.
double resident_bytes();

// How many files and connections a process may have open.

// Raises the limit as far as the system allows without asking anybody: the usual 1024 is less than
// a large job has of ranks or of files.
void raise_open_file_limit();

}  // namespace bev
