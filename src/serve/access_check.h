// Who may ask.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "serve/http/http_message.h"
#include "serve/request_fields.h"

namespace bev {

struct AccessRules {
  std::string key{};  // that clients must show; empty: none
  // The names under which clients may address this server; empty: any. A page of somebody else's
  // can make a browser send requests to this machine under the page's own name (DNS rebinding):
  // only the name tells them apart.
  std::vector<std::string> hosts{};
};

class AccessCheck {
 public:
  explicit AccessCheck(const AccessRules& rules);

  // Why the request is refused before anything of it is looked at; none: it is not. A browser's
  // request on behalf of another site is refused as well.
  std::optional<ApiError> refuse_origin(const HttpRequest& request) const;
  // Why it is refused without the right key.
  std::optional<ApiError> refuse_key(const HttpRequest& request) const;

 private:
  bool is_known(std::string_view host) const;

  bool has_key_;
  Sha256Digest key_;  // not the key itself: digests are of one length, and compared in one time
  std::vector<std::string> hosts_;
};

// "localhost:8000" -> "localhost", "[::1]:8000" -> "[::1]", in lower case.
std::string host_without_port(std::string_view host);

}  // namespace bev
