#include "serve/api_server.h"

#include <page_html.h>

#include <array>
#include <utility>

#include "base/crypto.h"
#include "base/format.h"
#include "base/json.h"
#include "serve/completion_job.h"
#include "serve/encoder_job.h"
#include "serve/megatron_job.h"

namespace bev {

namespace {

Json json_of(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "bevatron"},
          {"max_model_len", model.limits.context}};
}

HttpResponse json_response(const Json& json) {
  return {.content_type = "application/json", .body = json_text(json)};
}

// The name behind /v1/models/, with %XX as the byte that it stands for.
std::string unescaped(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    result += is_escape ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (is_escape) i += 2;
  }
  return result;
}

constexpr std::string_view kModelPrefix = "/v1/models/";
constexpr std::string_view kMegatronPath = "/api";

}  // namespace

struct Api::Route {
  std::string_view path;     // ends with a slash: whatever follows
  std::string_view methods;  // "GET HEAD"
  bool needs_key;
  Answering answer;
};

const Api::Route* Api::find_route(const std::string& path) {
  static constexpr std::array<Route, 9> kRoutes{{
      {"/", "GET HEAD", false, &Api::page},
      {"/health", "GET HEAD", false, &Api::health},
      {"/metrics", "GET HEAD", true, &Api::metrics},
      {"/v1/models", "GET HEAD", true, &Api::models},
      {kModelPrefix, "GET HEAD", true, &Api::model},
      {"/v1/completions", "POST", true, &Api::completions},
      {"/v1/embeddings", "POST", true, &Api::embeddings},
      {"/v1/fill-mask", "POST", true, &Api::fill_mask},
      {kMegatronPath, "PUT POST", true, &Api::megatron},
  }};
  for (const Route& route : kRoutes)
    if (path == route.path || (route.path == kModelPrefix && path.starts_with(kModelPrefix)))
      return &route;
  return nullptr;
}

Api::Api(ServedModel model, ApiOptions options, PostCall post, std::function<size_t()> connections)
    : model_(std::move(model)),
      options_(std::move(options)),
      post_(std::move(post)),
      connections_(std::move(connections)),
      access_(options_.access),
      clock_{.limit = options_.request_limit},
      health_(model_, post_, options_.health_valid, options_.health_limit) {}

std::unique_ptr<HttpJob> Api::handle(HttpRequest request, HttpAnswer& answer) {
  const auto refuse = [&](const ApiError& error) {
    answer.send(response_of(error));
    return nullptr;
  };
  if (const auto problem = access_.refuse_origin(request)) return refuse(*problem);
  const Route* route = find_route(request.path);
  if (route == nullptr)
    return refuse({.status = 404, .message = "there is nothing at this address"});
  answer.record().route = route->path;
  if (format(" {} ", route->methods).find(format(" {} ", request.method)) == std::string::npos) {
    HttpResponse response =
        response_of({.status = 405, .message = format("{} takes {}", route->path, route->methods)});
    std::string allowed(route->methods);
    if (const size_t blank = allowed.find(' '); blank != std::string::npos)
      allowed.replace(blank, 1, ", ");
    response.headers.push_back({"Allow", allowed});
    answer.send(std::move(response));
    return nullptr;
  }
  if (route->needs_key)
    if (const auto problem = access_.refuse_key(request)) return refuse(*problem);
  return (this->*route->answer)(request, answer);
}

void Api::finished(const HttpRecord& record) {
  metrics_.request(record);
  if (options_.log) options_.log(record);
}

HttpResponse Api::error(const HttpRecord& request, int status, const std::string& message) {
  const ApiError error{.status = status, .message = message};
  return request.route == kMegatronPath ? megatron_response_of(error) : response_of(error);
}

void Api::tick() {
  clock_.tick();
  health_.tick();
  if (options_.on_tick) options_.on_tick();
}

std::unique_ptr<HttpJob> Api::page(const HttpRequest&, HttpAnswer& answer) {
  answer.send(web_page());
  return nullptr;
}

std::unique_ptr<HttpJob> Api::health(const HttpRequest&, HttpAnswer& answer) {
  return health_.ask(answer);
}

std::unique_ptr<HttpJob> Api::metrics(const HttpRequest&, HttpAnswer& answer) {
  answer.send({.content_type = "text/plain; version=0.0.4; charset=utf-8",
               .body = metrics_.page(model_.monitored().counts(), connections_(),
                                     !model_.monitored().failure().empty())});
  return nullptr;
}

std::unique_ptr<HttpJob> Api::models(const HttpRequest&, HttpAnswer& answer) {
  answer.send(json_response({{"object", "list"}, {"data", Json::array({json_of(model_)})}}));
  return nullptr;
}

std::unique_ptr<HttpJob> Api::model(const HttpRequest& request, HttpAnswer& answer) {
  const std::string name = unescaped(request.path.substr(kModelPrefix.size()));
  if (name == model_.name) {
    answer.send(json_response(json_of(model_)));
  } else {
    answer.send(response_of({.status = 404,
                             .message = format("there is no model {}; this server has {}",
                                               in_quotes(name), in_quotes(model_.name)),
                             .param = "model",
                             .code = "model_not_found"}));
  }
  return nullptr;
}

namespace {

ApiError not_for_bert(std::string_view path) {
  return {.message = format("{} needs a causal language model, and this server has a BERT; "
                            "use /v1/embeddings or /v1/fill-mask",
                            path),
          .code = "model_not_supported"};
}

}  // namespace

std::unique_ptr<HttpJob> Api::completions(const HttpRequest& request, HttpAnswer& answer) {
  if (model_.encoder != nullptr) {
    answer.send(response_of(not_for_bert(request.path)));
    return nullptr;
  }
  auto wanted = read_completion_request(request.body, model_.limits);
  std::optional<ApiError> problem;
  if (const ApiError* error = std::get_if<ApiError>(&wanted)) {
    problem = *error;
  } else {
    auto work = std::make_unique<CompletionJob>(
        model_, std::get<CompletionRequest>(std::move(wanted)), answer, post_, metrics_, clock_);
    problem = work->start(next_number_++);
    if (!problem) return work;
  }
  answer.send(response_of(*problem));
  return nullptr;
}

std::unique_ptr<HttpJob> Api::embeddings(const HttpRequest& request, HttpAnswer& answer) {
  return encode(request, answer, read_embedding_request);
}

std::unique_ptr<HttpJob> Api::fill_mask(const HttpRequest& request, HttpAnswer& answer) {
  if (model_.encoder != nullptr && !model_.has_lm_head) {
    answer.send(response_of({.message = "the model of this server is a BertModel without an LM "
                                        "head, which predicts no words",
                             .code = "model_not_supported"}));
    return nullptr;
  }
  return encode(request, answer, read_fill_mask_request);
}

std::unique_ptr<HttpJob> Api::encode(const HttpRequest& request, HttpAnswer& answer,
                                     ReadEncoderTexts* read) {
  std::optional<ApiError> problem;
  if (model_.encoder == nullptr) {
    problem = ApiError{.message = format("{} needs a BERT, and this server has a causal language "
                                         "model: use /v1/completions",
                                         request.path),
                       .code = "model_not_supported"};
  } else if (auto wanted = read(request.body, model_.limits);
             const ApiError* error = std::get_if<ApiError>(&wanted)) {
    problem = *error;
  } else {
    auto work = std::make_unique<EncoderJob>(model_, std::get<EncoderTexts>(std::move(wanted)),
                                             answer, post_, clock_);
    problem = work->start();
    if (!problem) return work;
  }
  answer.send(response_of(*problem));
  return nullptr;
}

std::unique_ptr<HttpJob> Api::megatron(const HttpRequest& request, HttpAnswer& answer) {
  if (model_.encoder != nullptr) {
    answer.send(megatron_response_of(not_for_bert(request.path)));
    return nullptr;
  }
  auto wanted = read_megatron_request(request.body, model_.limits);
  std::optional<ApiError> problem;
  const auto begin = [&](auto work) -> std::unique_ptr<HttpJob> {
    problem = work->start(next_number_++);
    if (problem) return nullptr;
    return work;
  };
  std::unique_ptr<HttpJob> work;
  if (const ApiError* error = std::get_if<ApiError>(&wanted)) {
    problem = *error;
  } else if (auto& read = std::get<MegatronRequest>(wanted); read.beams > 0) {
    work = begin(std::make_unique<BeamSearchJob>(model_, std::move(read), answer, post_, clock_));
  } else {
    work = begin(
        std::make_unique<MegatronJob>(model_, std::move(read), answer, post_, metrics_, clock_));
  }
  if (problem) answer.send(megatron_response_of(*problem));
  return work;
}

namespace {

constexpr std::string_view kNonceMark = "@NONCE@";

}  // namespace

HttpResponse web_page() {
  const std::string nonce = random_name();
  std::string body(kPageHtml);
  for (size_t at = body.find(kNonceMark); at != std::string::npos; at = body.find(kNonceMark, at))
    body.replace(at, kNonceMark.size(), nonce);
  return {.content_type = "text/html; charset=utf-8",
          .body = std::move(body),
          .headers = {{"Content-Security-Policy",
                       format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; "
                              "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                              "frame-ancestors 'none'",
                              nonce)},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-store"}}};
}

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
  if (!has_failed_ && !model_.monitored().failure().empty()) {
    has_failed_ = true;
    failed_at_ = now;
  }
  const bool has_waited = has_failed_ && now - failed_at_ >= options_.failure_limit;
  if (!has_waited && !(options_.is_asked_to_end && options_.is_asked_to_end())) return;
  is_ending_ = true;
  drain();
}

}  // namespace bev
