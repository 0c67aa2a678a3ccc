#include "serve/web_page.h"

#include <page_html.h>

#include "base/format.h"
#include "serve/random_names.h"

namespace bev {

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

}  // namespace bev
