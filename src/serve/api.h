// What the server answers: which address is for what.
#pragma once

#include <functional>
#include <memory>

#include "serve/access_check.h"
#include "serve/health_check.h"
#include "serve/http/http_handler.h"
#include "serve/serve_metrics.h"
#include "serve/served_model.h"
#include "serve/timed_job.h"

namespace bev {

struct ApiOptions {
  AccessRules access{};
  std::chrono::milliseconds request_limit{600000};  // for the whole answer of one request
  std::chrono::milliseconds health_valid{3000}, health_limit{10000};
  std::function<void(const HttpRecord& record)> log{};  // hears each request; may be empty
  std::function<void()> on_tick{};                      // some times a second; may be empty
};

class Api final : public HttpHandler {
 public:
  // `post` calls in the thread of the server; `connections` says how many are open.
  Api(ServedModel model, ApiOptions options, PostCall post, std::function<size_t()> connections);

  std::unique_ptr<HttpWork> handle(HttpRequest request, HttpAnswer& answer) override;
  void finished(const HttpRecord& record) override;
  HttpResponse error(const HttpRecord& request, int status, const std::string& message) override;
  void tick() override;

 private:
  struct Route;
  using Answering = std::unique_ptr<HttpWork> (Api::*)(const HttpRequest& request,
                                                       HttpAnswer& answer);

  static const Route* find_route(const std::string& path);
  std::unique_ptr<HttpWork> page(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpWork> health(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpWork> metrics(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpWork> models(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpWork> model(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpWork> completions(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpWork> megatron(const HttpRequest& request, HttpAnswer& answer);

  ServedModel model_;
  ApiOptions options_;
  PostCall post_;
  std::function<size_t()> connections_;
  AccessCheck access_;
  ServeMetrics metrics_;
  WorkClock clock_;
  HealthCheck health_;
  uint64_t next_number_ = 1;
};

}  // namespace bev
