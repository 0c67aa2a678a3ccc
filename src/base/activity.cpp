#include "base/activity.h"

#include "base/format.h"

namespace bev {

namespace {

std::string decimal_size(uint64_t bytes) {
  const auto count = static_cast<double>(bytes);
  if (bytes < 1000) return format("{} bytes", bytes);
  if (count < 1e6) return format("{:.1f} kB", count / 1e3);
  if (count < 1e9) return format("{:.1f} MB", count / 1e6);
  return format("{:.1f} GB", count / 1e9);
}

}  // namespace

void Activity::begin(const char* what, uint64_t bytes, const std::string* peers) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  bytes_ = bytes;
  peers_ = peers;
  ++count_;
  since_ = Clock::now();
}

void Activity::end() {
  const std::lock_guard lock(mutex_);
  what_ = nullptr;
  peers_ = nullptr;
  since_ = Clock::now();
}

void Activity::at_step(int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

std::string Activity::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = what_ == nullptr ? "computing" : what_;
  if (what_ != nullptr && bytes_ > 0) text += format(" of {}", decimal_size(bytes_));
  if (what_ != nullptr && peers_ != nullptr) text += format(" with {}", *peers_);
  const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
  return text + format(" for {:.1f} s, step {}", seconds, step_);
}

uint64_t Activity::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace bev
