// A server with a thread of its own, on a free port of this machine.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "net/address.h"
#include "net/socket.h"
#include "serve/api_server.h"
#include "text/tokenizer.h"
#include "unit/serve/fake_service.h"
#include "unit/serve/http_client.h"

namespace bev::test {

// Whether it comes true within some seconds.
inline bool soon(const std::function<bool()>& is_true) {
  for (int i = 0; i < 1000; ++i) {
    if (is_true()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

class Served {
 public:
  explicit Served(const ModelServerOptions& options = {}) : Served(options, nullptr) {}
  // With another service than the fake one, with other tokens than bytes, of a T5.
  Served(const ModelServerOptions& options, GenerationService* other, Tokenizer* tokens = nullptr,
         const std::optional<SourceFormat>& source = {}) {
    Socket listener = listen_on("127.0.0.1", 0);
    port = address_here(listener.get()).port();
    ServedModel model;
    model.name = "tiny";
    model.created = 7;
    model.tokenizer = tokens == nullptr ? &tokenizer : tokens;
    model.service = other == nullptr ? &service : other;
    model.end = kByteEod;
    model.limits = {.context = 64, .max_tokens = 50, .texts = 8, .vocab = kByteVocab};
    model.source = source;
    if (source) model.end = static_cast<int32_t>(source->special.end);
    server = std::make_unique<ModelServer>(std::move(listener), model, options);
    thread_ = std::thread([this] {
      server->run();
      has_ended = true;
    });
  }
  ~Served() {
    server->stop();
    thread_.join();
  }

  HttpClient client() const { return HttpClient(port); }
  Reply ask(std::string_view method, std::string_view path, std::string_view body = "",
            std::string_view headers = "") const {
    return client().ask(method, path, body, headers);
  }
  Reply complete(std::string_view body) const { return ask("POST", "/v1/completions", body); }

  FakeService service;
  ByteTokenizer tokenizer;
  int port = 0;
  std::unique_ptr<ModelServer> server;
  std::atomic<bool> has_ended{false};

 private:
  std::thread thread_;
};

}  // namespace bev::test
