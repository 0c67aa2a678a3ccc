#include "serve/model_server.h"

namespace bev {

namespace {

ApiOptions with_tick(ApiOptions options, std::function<void()> tick) {
  options.on_tick = std::move(tick);
  return options;
}

}  // namespace

ModelServer::ModelServer(Socket listener, const ServedModel& model,
                         const ModelServerOptions& options)
    : model_(model),
      options_(options),
      api_(
          model_, with_tick(options.api, [this] { tick(); }),
          [this](std::function<void()> call) { server_->post(std::move(call)); },
          [this] { return server_->connections(); }),
      server_(std::make_unique<HttpServer>(std::move(listener), options.http, api_)) {}

void ModelServer::run() { server_->run(); }

void ModelServer::drain() { server_->drain(options_.drain_limit); }

void ModelServer::tick() {
  if (is_ending_) return;
  const auto now = std::chrono::steady_clock::now();
  if (!has_failed_ && !model_.service->failure().empty()) {
    has_failed_ = true;
    failed_at_ = now;
  }
  const bool has_told = has_failed_ && now - failed_at_ >= options_.failure_limit;
  if (!has_told && !(options_.is_asked_to_end && options_.is_asked_to_end())) return;
  is_ending_ = true;
  drain();
}

}  // namespace bev
