#include "report/status_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/format.h"
#include "net/interfaces.h"

namespace bev {

namespace {

// Appears whole or not at all. Nothing is flushed to the disk: a status that a power cut loses is
// old anyway, and flushing would wait for the checkpoint that is being written. Returns why it
// failed, or nothing.
std::optional<std::string> replace_file(const std::filesystem::path& file,
                                        const std::filesystem::path& draft,
                                        const std::string& text) {
  const auto failed = [&] {
    std::optional<std::string> why =
        format("cannot write {}: {}", file.string(), std::strerror(errno));
    ::unlink(draft.c_str());
    return why;
  };
  const int descriptor = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return failed();
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::write(descriptor, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int why = errno;
      ::close(descriptor);
      errno = why;
      return failed();
    }
    done += static_cast<size_t>(put);
  }
  if (::close(descriptor) != 0 || ::rename(draft.c_str(), file.c_str()) != 0) return failed();
  return std::nullopt;
}

RunStatus completed(RunStatus status) {
  const double now = wall_clock();
  if (status.host.empty()) status.host = host_name();
  if (status.process.pid == 0) status.process = own_process();
  if (status.started == 0) status.started = now;
  if (status.phase_since == 0) status.phase_since = now;
  if (status.iteration_time == 0) status.iteration_time = now;
  return status;
}

}  // namespace

StatusFile::StatusFile(std::filesystem::path file, RunStatus first, StatusTimes times)
    : file_(std::move(file)),
      draft_(file_.string() + format(".partial.{}", ::getpid())),
      times_(times),
      status_(completed(std::move(first))),
      writer_([this] { keep_writing(); }) {}

StatusFile::~StatusFile() {
  change([](RunStatus& status) {
    if (status.is_over()) return;
    status.phase = RunPhase::Failed;
    status.ending = "an error that its output names";
  });
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_one();
  writer_.join();
}

void StatusFile::change(FunctionRef<void(RunStatus&)> edit) {
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    const RunPhase phase = status_.phase;
    const int64_t iteration = status_.iteration;
    edit(status_);
    has_changed_ = true;
    if (status_.iteration != iteration) status_.iteration_time = wall_clock();
    if (status_.phase != phase) {
      status_.phase_since = wall_clock();
      wakes = !is_urgent_;
      is_urgent_ = true;
    }
  }
  if (wakes) wake_.notify_one();
}

RunStatus StatusFile::current() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

std::optional<std::string> StatusFile::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void StatusFile::write(std::unique_lock<std::mutex>& lock) {
  has_changed_ = is_urgent_ = false;
  status_.updated = wall_clock();
  RunStatus status = status_;
  lock.unlock();
  status.host_bytes = resident_bytes();
  std::optional<std::string> failure = replace_file(file_, draft_, to_text(status));
  lock.lock();
  failure_ = std::move(failure);
}

void StatusFile::keep_writing() {
  using Seconds = std::chrono::duration<double>;
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    write(lock);
    const double written = seconds_now();
    wake_.wait_for(lock, Seconds(times_.least_pause), [&] { return is_ending_; });
    while (!is_ending_ && !is_urgent_) {
      const double passed = seconds_now() - written;
      if (passed >= times_.heartbeat || (has_changed_ && passed >= times_.period)) break;
      wake_.wait_for(lock, Seconds(std::min(times_.period, times_.heartbeat)),
                     [&] { return is_ending_ || is_urgent_; });
    }
  }
  write(lock);
}

}  // namespace bev
