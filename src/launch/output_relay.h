// What a rank writes, on its way to the terminal and to a file.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/function_ref.h"

namespace bev {

// Cuts a stream of bytes into lines. A line of more than `longest` bytes comes in pieces.
class LineCutter {
 public:
  explicit LineCutter(size_t longest) : longest_(longest) {}

  // Lines come without their ends.
  void add(std::string_view bytes, FunctionRef<void(std::string_view line)> use);
  // What is left when the stream ends without the end of a line.
  void finish(FunctionRef<void(std::string_view line)> use);

 private:
  size_t longest_;
  std::string begun_;
};

// A stream of ours to which several ranks write. Nothing here waits: what finds no room stays until
// there is. When nobody reads it any more, all gets lost.
class RelayStream {
 public:
  explicit RelayStream(int descriptor) : descriptor_(descriptor) {}

  int descriptor() const { return descriptor_; }
  bool has_pending() const { return !pending_.empty(); }
  // Too much is waiting: ranks should not be read further.
  bool is_full() const { return pending_.size() > kMostPending; }

  void add(std::string_view text);
  // Writes some of what waits. REQUIRES: poll(2) says that there is room.
  void write_some();

 private:
  static constexpr size_t kMostPending = size_t{1} << 20;
  int descriptor_;
  std::string pending_;
};

// One stream of one rank: read from a pipe, written whole to a file and line by line, with a
// prefix, to a console.
class OutputRelay {
 public:
  // `file` may be closed: none.
  OutputRelay(Descriptor pipe, Descriptor file, RelayStream& console, std::string prefix)
      : pipe_(std::move(pipe)),
        file_(std::move(file)),
        console_(console),
        prefix_(std::move(prefix)) {}

  // -1 when the stream has ended.
  int descriptor() const { return pipe_.get(); }
  const RelayStream& console() const { return console_; }
  // REQUIRES: poll(2) says that there is something, or the end.
  void read_some();
  // Ends the stream, although a process may still hold its other end.
  void end();
  // The last lines.
  const std::deque<std::string>& last_lines() const { return last_; }

 private:
  void use(std::string_view line);

  Descriptor pipe_, file_;
  RelayStream& console_;
  std::string prefix_;
  LineCutter lines_{size_t{64} << 10};
  std::deque<std::string> last_;
};

}  // namespace bev
