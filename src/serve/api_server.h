// The HTTP API: routes, the page at /, and the server with its model.
#pragma once

#include <functional>
#include <memory>

#include "serve/access_check.h"
#include "serve/encoder_job.h"
#include "serve/generation_job.h"
#include "serve/http/http_message.h"
#include "serve/http/http_server.h"
#include "serve/monitoring.h"

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

  std::unique_ptr<HttpJob> handle(HttpRequest request, HttpAnswer& answer) override;
  void finished(const HttpRecord& record) override;
  HttpResponse error(const HttpRecord& request, int status, const std::string& message) override;
  void tick() override;

 private:
  struct Route;
  using Answering = std::unique_ptr<HttpJob> (Api::*)(const HttpRequest& request,
                                                      HttpAnswer& answer);

  static const Route* find_route(const std::string& path);
  std::unique_ptr<HttpJob> page(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpJob> health(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpJob> metrics(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpJob> models(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpJob> model(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpJob> completions(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpJob> embeddings(const HttpRequest& request, HttpAnswer& answer);
  std::unique_ptr<HttpJob> fill_mask(const HttpRequest& request, HttpAnswer& answer);
  using ReadEncoderTexts = std::variant<EncoderTexts, ApiError>(std::string_view body,
                                                                const RequestLimits& limits);
  std::unique_ptr<HttpJob> encode(const HttpRequest& request, HttpAnswer& answer,
                                  ReadEncoderTexts* read);
  std::unique_ptr<HttpJob> megatron(const HttpRequest& request, HttpAnswer& answer);

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

// The page at /, for trying the model in a browser.

// One file that loads nothing: the browser is told not to.
HttpResponse web_page();

// A model behind HTTP.

struct ModelServerOptions {
  HttpLimits http{};
  ApiOptions api{};  // on_tick is not used
  std::chrono::milliseconds drain_limit{30000};
  // So long a server whose model has failed says so to all who ask.
  std::chrono::milliseconds failure_limit{3000};
  // Asked some times a second: whether the server is to end when what runs has ended. May be empty.
  std::function<bool()> is_asked_to_end{};
};

class ModelServer {
 public:
  // `listener` as listen_on() makes it. What `model` points to must outlive this.
  ModelServer(Socket listener, const ServedModel& model, const ModelServerOptions& options);

  // Serves until it is asked to end, or until the model has failed (its failure() says how).
  void run();
  // From any thread.
  void drain();
  void stop() { server_->stop(); }
  // How many requests are being answered, connections are open: for tests.
  size_t connections() const { return server_->connections(); }

 private:
  void tick();

  ServedModel model_;
  ModelServerOptions options_;
  Api api_;
  std::unique_ptr<HttpServer> server_;
  bool is_ending_ = false;
  bool has_failed_ = false;
  std::chrono::steady_clock::time_point failed_at_{};
};

}  // namespace bev
