#include "serve/http/http_message.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"

namespace bev {

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower_case(c);
  return result;
}

const std::string* HttpRequest::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const HttpHeader& each) { return each.name == name; });
  return found == headers.end() ? nullptr : &found->value;
}

std::string_view reason_of(int status) {
  constexpr std::array<std::pair<int, std::string_view>, 19> kReasons{{
      {200, "OK"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {411, "Length Required"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  }};
  const auto* found = std::find_if(kReasons.begin(), kReasons.end(),
                                   [&](const auto& each) { return each.first == status; });
  return found == kReasons.end() ? "Unknown" : found->second;
}

std::string head_of(const HttpResponse& response, std::string_view framing) {
  std::string text = format("HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
  if (!response.content_type.empty()) text += format("Content-Type: {}\r\n", response.content_type);
  for (const HttpHeader& each : response.headers)
    text += format("{}: {}\r\n", each.name, each.value);
  text += framing;
  text += "\r\n";
  return text;
}

}  // namespace bev
