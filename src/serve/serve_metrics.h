// What a server counts, in the text format of Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "infer/generation_service.h"
#include "serve/http/http_handler.h"

namespace bev {

// How many values were at most so large.
class Histogram {
 public:
  void add(double value);
  // Lines "name_bucket{le=...}", "name_sum", "name_count".
  std::string lines(std::string_view name, std::string_view help) const;

 private:
  static constexpr std::array kEdges{0.005, 0.01, 0.025, 0.05, 0.1,  0.25, 0.5,
                                     1.0,   2.5,  5.0,   10.0, 30.0, 60.0, 300.0};
  std::array<int64_t, kEdges.size() + 1> counts_{};  // of each range; the last has no end
  double sum_ = 0;
};

// Of the thread of the server.
class ServeMetrics {
 public:
  void request(const HttpRecord& record);
  void first_token(double seconds) { first_token_.add(seconds); }

  std::string page(const ServiceCounts& counts, size_t connections, bool has_failed) const;

 private:
  std::map<std::pair<std::string, int>, int64_t> requests_;  // by route and status
  Histogram seconds_;  // of generating requests that were answered
  Histogram first_token_;
};

}  // namespace bev
