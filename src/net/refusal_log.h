// Notes about strangers: the first few one by one, then how many.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace bev {

class RefusalNotes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RefusalNotes(std::function<void(const std::string&)> note) : note_(std::move(note)) {}

  void refused(const std::string& who, const std::string& why);
  // From time to time.
  void tick(Time now);

 private:
  std::function<void(const std::string&)> note_;
  uint64_t noted_ = 0, not_noted_ = 0;
  Time next_{};
};

}  // namespace bev
