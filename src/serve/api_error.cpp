#include "serve/api_error.h"

#include "base/json.h"
#include "serve/json_text.h"

namespace bev {

namespace {

std::string_view type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

}  // namespace

std::string json_of(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return json_text({{"error",
                     {{"message", error.message},
                      {"type", type_of(error.status)},
                      {"param", or_null(error.param)},
                      {"code", or_null(error.code)}}}});
}

HttpResponse response_of(const ApiError& error) {
  HttpResponse response{
      .status = error.status, .content_type = "application/json", .body = json_of(error)};
  if (error.status == 429 || error.status == 503) response.headers.push_back({"Retry-After", "1"});
  if (error.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

}  // namespace bev
