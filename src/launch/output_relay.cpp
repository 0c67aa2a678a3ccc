#include "launch/output_relay.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace bev {

namespace {

constexpr size_t kLastLines = 12, kLastWidth = 400;

// To a file: a full disk loses the log and ends nothing.
void write_to_file(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void LineCutter::add(std::string_view bytes, FunctionRef<void(std::string_view)> use) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t room = longest_ - begun_.size();
    if (end == std::string_view::npos && bytes.size() < room) {
      begun_ += bytes;
      return;
    }
    const size_t taken = std::min(end, room);
    begun_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    // The end of the line itself; where the line is too long, it comes later.
    if (!bytes.empty() && bytes[0] == '\n') bytes.remove_prefix(1);
    use(begun_);
    begun_.clear();
  }
}

void LineCutter::finish(FunctionRef<void(std::string_view)> use) {
  if (!begun_.empty()) use(begun_);
  begun_.clear();
}

void RelayStream::add(std::string_view text) {
  if (descriptor_ >= 0) pending_ += text;
}

void RelayStream::write_some() {
  // A pipe that has room has it for so many bytes.
  const size_t count = std::min(pending_.size(), size_t{PIPE_BUF});
  const ssize_t written = ::write(descriptor_, pending_.data(), count);
  if (written >= 0) {
    pending_.erase(0, static_cast<size_t>(written));
  } else if (errno != EINTR && errno != EAGAIN) {
    descriptor_ = -1;
    pending_.clear();
  }
}

OutputRelay::OutputRelay(int pipe, int file, RelayStream& console, std::string prefix)
    : pipe_(pipe), file_(file), console_(&console), prefix_(std::move(prefix)) {}

OutputRelay::OutputRelay(OutputRelay&& other) noexcept
    : pipe_(std::exchange(other.pipe_, -1)),
      file_(std::exchange(other.file_, -1)),
      console_(other.console_),
      prefix_(std::move(other.prefix_)),
      lines_(std::move(other.lines_)),
      last_(std::move(other.last_)) {}

OutputRelay::~OutputRelay() {
  if (pipe_ >= 0) ::close(pipe_);
  if (file_ >= 0) ::close(file_);
}

void OutputRelay::use(std::string_view line) {
  console_->add(prefix_);
  console_->add(line);
  console_->add("\n");
  last_.emplace_back(line.substr(0, kLastWidth));
  if (last_.size() > kLastLines) last_.pop_front();
}

void OutputRelay::read_some() {
  std::array<char, 65536> bytes;
  const ssize_t got = ::read(pipe_, bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    end();
    return;
  }
  const std::string_view text(bytes.data(), static_cast<size_t>(got));
  if (file_ >= 0) write_to_file(file_, text);
  lines_.add(text, [this](std::string_view line) { use(line); });
}

void OutputRelay::end() {
  if (pipe_ < 0) return;
  lines_.finish([this](std::string_view line) { use(line); });
  ::close(std::exchange(pipe_, -1));
}

}  // namespace bev
