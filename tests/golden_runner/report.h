// Report of the golden runner: one line per case, and a summary.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace bev::golden {

// The device name in the report of a case that uses no device.
inline constexpr const char* kHost = "host";
inline constexpr const char* kNotYet = "not in this version";

class Report {
 public:
  // Passes when error <= bound; an error that is not a number fails.
  void check(const std::string& name, std::string_view device, double error, double bound);
  // Passes when nothing differs.
  void check_same(const std::string& name, size_t differences) {
    check(name, kHost, static_cast<double>(differences), 0.0);
  }
  void fail(const std::string& name, std::string_view device, std::string_view why);
  void skip(const std::string& name, std::string_view why);

  // Runs the body; an exception is reported as one failed case.
  void guarded(const std::string& name, std::string_view device, const std::function<void()>& body);

  // Prints the summary and returns the exit code.
  int finish() const;

 private:
  int passed_ = 0, failed_ = 0, skipped_ = 0;
};

// The largest absolute difference over the largest absolute expected value (over 1 when all
// expected values are 0). Infinite when the counts differ or a value is not finite.
double relative_error(std::span<const double> got, std::span<const double> expected);

// The root of the mean squared difference over that of the expected values; otherwise the same.
double rms_error(std::span<const double> got, std::span<const double> expected);

}  // namespace bev::golden
