// A model behind HTTP.
#pragma once

#include <memory>

#include "serve/api.h"
#include "serve/http/http_server.h"

namespace bev {

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
