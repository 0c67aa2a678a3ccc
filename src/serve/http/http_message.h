// HTTP as a handler sees it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bev {

struct HttpHeader {
  std::string name;  // of a request: in lower case
  std::string value;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/v1/models", as it came, without what follows a question mark
  std::vector<HttpHeader> headers{};
  std::string body{};
  bool keeps_alive = true;  // the connection is for further requests
  bool is_old = false;      // HTTP/1.0, which knows no chunks

  // The value; null where there is none. `name` in lower case.
  const std::string* header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type{};
  std::string body{};
  std::vector<HttpHeader> headers{};  // besides those about the body and the connection
};

// "Not Found"
std::string_view reason_of(int status);

// The lines in front of a body, with the empty one. `framing` are whole lines: how long the body
// is, whether the connection stays.
std::string head_of(const HttpResponse& response, std::string_view framing);

}  // namespace bev
