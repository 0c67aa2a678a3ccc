// The values of a job's KeyStore, and who waits for which.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bev {

class SharedKeys {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Wait {
    int rank = 0;
    uint64_t request = 0;
    std::string key;
    Time since{};
  };

  explicit SharedKeys(size_t bytes_most) : bytes_most_(bytes_most) {}

  // Why it is not taken; empty: it is.
  std::string put(const std::string& key, std::string value);
  const std::string* find(const std::string& key) const;

  void wait(Wait wait) { waits_.push_back(std::move(wait)); }
  // Those that wait for the key, or since before that time, wait no longer.
  std::vector<Wait> take_waits(const std::string& key);
  std::vector<Wait> take_waits_since(Time before);

 private:
  size_t bytes_most_, bytes_ = 0;
  std::map<std::string, std::string> values_;
  std::vector<Wait> waits_;
};

}  // namespace bev
