#include "launch/output_relay.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace bev {

namespace {

constexpr size_t kLastLines = 12, kLastWidth = 400;

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

void OutputRelay::use(std::string_view line) {
  console_.add(prefix_);
  console_.add(line);
  console_.add("\n");
  last_.emplace_back(line.substr(0, kLastWidth));
  if (last_.size() > kLastLines) last_.pop_front();
}

void OutputRelay::read_some() {
  std::array<char, 65536> bytes;
  const ssize_t got = ::read(pipe_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    end();
    return;
  }
  const std::string_view text(bytes.data(), static_cast<size_t>(got));
  // A full disk loses the log and ends nothing.
  if (file_.is_open()) write_all(file_.get(), text);
  lines_.add(text, [this](std::string_view line) { use(line); });
}

void OutputRelay::end() {
  if (!pipe_.is_open()) return;
  lines_.finish([this](std::string_view line) { use(line); });
  pipe_.close();
}

}  // namespace bev
