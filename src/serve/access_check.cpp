#include "serve/access_check.h"

#include <algorithm>
#include <span>

#include "base/crypto.h"
#include "base/json.h"

namespace bev {

namespace {

Sha256Digest digest_of(std::string_view text) {
  Sha256 sum;
  sum.add(std::as_bytes(std::span(text)));
  return sum.digest();
}

}  // namespace

std::string host_without_port(std::string_view host) {
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  return lower_case(has_port ? host.substr(0, colon) : host);
}

AccessCheck::AccessCheck(const AccessRules& rules)
    : has_key_(!rules.key.empty()), key_(digest_of(rules.key)), hosts_(rules.hosts) {
  for (std::string& host : hosts_) host = host_without_port(host);
}

bool AccessCheck::is_known(std::string_view host) const {
  return hosts_.empty() ||
         std::find(hosts_.begin(), hosts_.end(), host_without_port(host)) != hosts_.end();
}

std::optional<ApiError> AccessCheck::refuse_origin(const HttpRequest& request) const {
  const std::string* host = request.header("host");
  if (host != nullptr && !is_known(*host))
    return ApiError{.status = 421,
                    .message = "this server is not addressed as " + in_quotes(*host) +
                               "; --allow-host names what it is called"};
  const std::string* origin = request.header("origin");
  if (origin == nullptr) return {};
  const size_t slashes = origin->find("://");
  const std::string_view from = slashes == std::string::npos
                                    ? std::string_view()
                                    : std::string_view(*origin).substr(slashes + 3);
  if (host != nullptr && lower_case(from) == lower_case(*host)) return {};
  return ApiError{.status = 403, .message = "a page of another site may not ask this server"};
}

std::optional<ApiError> AccessCheck::refuse_key(const HttpRequest& request) const {
  if (!has_key_) return {};
  constexpr std::string_view kScheme = "bearer ";
  const std::string* given = request.header("authorization");
  const bool is_bearer = given != nullptr && given->size() > kScheme.size() &&
                         lower_case(given->substr(0, kScheme.size())) == kScheme;
  const Sha256Digest shown =
      digest_of(is_bearer ? std::string_view(*given).substr(kScheme.size()) : std::string_view());
  if (same_tag(shown, key_)) return {};
  return ApiError{.status = 401,
                  .message = is_bearer ? "the key is not the one of this server"
                                       : "a key is needed: Authorization: Bearer KEY",
                  .code = "invalid_api_key"};
}

}  // namespace bev
