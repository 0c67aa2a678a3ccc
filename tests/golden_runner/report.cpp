#include "golden_runner/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "base/format.h"

namespace bev::golden {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void print(const std::string& line) { std::puts(line.c_str()); }

bool comparable(std::span<const double> got, std::span<const double> expected) {
  return got.size() == expected.size() &&
         std::all_of(got.begin(), got.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

void Report::check(const std::string& name, std::string_view device, double error, double bound) {
  const bool passes = error <= bound;
  ++(passes ? passed_ : failed_);
  print(format("{} {} {} error {:.2e} bound {:.2e}", passes ? "PASS" : "FAIL", name, device, error,
               bound));
}

void Report::fail(const std::string& name, std::string_view device, std::string_view why) {
  ++failed_;
  print(format("FAIL {} {} {}", name, device, why));
}

void Report::skip(const std::string& name, std::string_view why) {
  ++skipped_;
  print(format("SKIP {}: {}", name, why));
}

void Report::guarded(const std::string& name, std::string_view device,
                     const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    fail(name, device, format("{} error: {}", name_of(e.kind), e.what()));
  } catch (const std::exception& e) {
    fail(name, device, e.what());
  }
}

int Report::finish() const {
  const std::string skipped = skipped_ > 0 ? format(", {} skipped", skipped_) : "";
  print(format("{} passed, {} failed{}", passed_, failed_, skipped));
  return failed_ > 0 ? 1 : 0;
}

double relative_error(std::span<const double> got, std::span<const double> expected) {
  if (!comparable(got, expected)) return kInfinity;
  double difference = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference = std::max(difference, std::abs(got[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return difference / (largest > 0 ? largest : 1.0);
}

double rms_error(std::span<const double> got, std::span<const double> expected) {
  if (!comparable(got, expected)) return kInfinity;
  double difference = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / (size > 0 ? size : 1.0));
}

}  // namespace bev::golden
