// Metrics of the server in the text format of Prometheus, and the health check.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "infer/generation_service.h"
#include "serve/generation_job.h"
#include "serve/http/http_message.h"

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

// Whether the model still makes tokens: asked of the model itself, since a server whose model hangs
// answers everything else.

// Of the thread of the server. One token is made for all who ask at a time; the result counts for
// some seconds. Where texts wait in front of that token, it is enough that the model gets on.
class HealthCheck {
 public:
  HealthCheck(const ServedModel& model, PostCall post, std::chrono::milliseconds valid,
              std::chrono::milliseconds limit);
  ~HealthCheck() { *self_ = nullptr; }
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;

  // Answers now or soon.
  std::unique_ptr<HttpJob> ask(HttpAnswer& answer);
  void tick();

 private:
  class Question;
  using Time = std::chrono::steady_clock::time_point;

  void begin();
  void begin_encoding();  // of a BERT
  // Tells all who ask. Empty: it is well. The probe stays: it may be what is calling.
  void conclude(const std::string& problem);
  HttpResponse response() const;

  const ServedModel& model_;
  PostCall post_;
  std::chrono::milliseconds valid_, limit_;
  std::set<Question*> asking_;
  std::unique_ptr<GenerationGroup> probe_;            // the last one
  std::unique_ptr<EncoderService::Ticket> encoding_;  // the last one, of a BERT
  int64_t encodings_ = 0;
  std::shared_ptr<HealthCheck*> self_ = std::make_shared<HealthCheck*>(this);
  bool is_probing_ = false;
  Time began_{}, valid_until_{};
  int64_t steps_ = 0;  // when the probe began
  std::string problem_;
};

}  // namespace bev
