// The one exception type of the program. Its kind says whose fault it is and decides the exit code.
// Nothing in the libraries prints or exits; main (or the body of a rank thread) catches.
#pragma once

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

enum class ErrorKind : uint8_t {
  Usage,     // the user asked for something impossible: exit 2
  Data,      // a file is missing, short or corrupt:     exit 3
  Device,    // out of memory, a failed kernel:          exit 4
  Comm,      // a peer failed or a time limit passed:    exit 5
  Numerics,  // numbers are not finite, or differ where they must not: exit 6
  Internal,  // a bug of ours:                           exit 70
};

int exit_code(ErrorKind kind);
std::string_view name_of(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message,
        std::source_location where = std::source_location::current());

  ErrorKind kind;
  std::source_location where;
  std::vector<std::string> context;  // what the thread was doing, outermost first
};

// Names the current activity for any Error thrown on this thread while it lives:
// "loading shard 3 of step-1000". Allocates: not for the step path.
class ErrorContext {
 public:
  explicit ErrorContext(std::string activity);
  ~ErrorContext();
  ErrorContext(const ErrorContext&) = delete;
  ErrorContext& operator=(const ErrorContext&) = delete;
};

}  // namespace bev
