#include "serve/access_check.h"

#include <gtest/gtest.h>

#include "unit/serve/served.h"

namespace bev {
namespace {

using test::Served;

HttpRequest with(std::vector<HttpHeader> headers) {
  return {.method = "GET", .path = "/", .headers = std::move(headers)};
}

TEST(Access, HostsWithoutTheirPorts) {
  EXPECT_EQ(host_without_port("LocalHost:8000"), "localhost");
  EXPECT_EQ(host_without_port("localhost"), "localhost");
  EXPECT_EQ(host_without_port("[::1]:8000"), "[::1]");
  EXPECT_EQ(host_without_port("[::1]"), "[::1]");
}

TEST(Access, AServerHasItsNames) {
  const AccessCheck check({.key = {}, .hosts = {"localhost", "[::1]"}});
  EXPECT_FALSE(check.refuse_origin(with({{"host", "localhost:1"}})));
  EXPECT_FALSE(check.refuse_origin(with({{"host", "LOCALHOST"}})));
  EXPECT_FALSE(check.refuse_origin(with({{"host", "[::1]:80"}})));
  EXPECT_EQ(check.refuse_origin(with({{"host", "evil.example:8000"}}))->status, 421);
  EXPECT_EQ(check.refuse_origin(with({{"host", "localhost.evil.example"}}))->status, 421);
  const AccessCheck with_port({.key = {}, .hosts = {"Models.example:8000"}});
  EXPECT_FALSE(with_port.refuse_origin(with({{"host", "models.example:8000"}})));
  EXPECT_FALSE(AccessCheck({}).refuse_origin(with({{"host", "anything"}})));
}

TEST(Access, PagesOfOthersMayNotAsk) {
  const AccessCheck check({.key = {}, .hosts = {"localhost"}});
  const auto from = [&](const std::string& origin) {
    return check.refuse_origin(with({{"host", "localhost:8000"}, {"origin", origin}})).has_value();
  };
  EXPECT_FALSE(from("http://localhost:8000"));
  EXPECT_TRUE(from("http://localhost:9000"));
  EXPECT_TRUE(from("http://evil.example"));
  EXPECT_TRUE(from("null"));
}

TEST(Access, TheKeyMustBeRight) {
  const AccessCheck check({.key = "0123456789abcdef"});
  const auto status = [&](const std::string& value) {
    const auto refused = check.refuse_key(with({{"authorization", value}}));
    return refused ? refused->status : 200;
  };
  EXPECT_EQ(status("Bearer 0123456789abcdef"), 200);
  EXPECT_EQ(status("bearer 0123456789abcdef"), 200);
  EXPECT_EQ(status("Bearer 0123456789abcdeF"), 401);
  EXPECT_EQ(status("Bearer 0123456789abcdef0"), 401);
  EXPECT_EQ(status("Bearer "), 401);
  EXPECT_EQ(status("Basic 0123456789abcdef"), 401);
  EXPECT_EQ(status("0123456789abcdef"), 401);
  EXPECT_EQ(check.refuse_key(with({}))->status, 401);
  EXPECT_FALSE(AccessCheck({}).refuse_key(with({})));
}

TEST(Access, WithAKeyOnlyThePageAndHealthAreOpen) {
  ModelServerOptions options;
  options.api.access.key = "0123456789abcdef";
  Served served(options);
  const std::string key = "Authorization: Bearer 0123456789abcdef\r\n";
  EXPECT_EQ(served.ask("GET", "/").status, 200);
  EXPECT_EQ(served.ask("GET", "/health").status, 200);
  for (const std::string path : {"/metrics", "/v1/models", "/v1/models/tiny"}) {
    const test::Reply reply = served.ask("GET", path);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_TRUE(reply.has("WWW-Authenticate: Bearer"));
    EXPECT_EQ(served.ask("GET", path, "", key).status, 200) << path;
  }
  const std::string body = R"({"prompt": "p"})";
  EXPECT_EQ(served.complete(body).status, 401);
  EXPECT_EQ(served.ask("POST", "/v1/completions", body, key).status, 200);
  EXPECT_EQ(served.ask("PUT", "/api", R"({"prompts": ["p"]})").status, 401);
  // Only the health question has reached the model besides.
  EXPECT_EQ(served.service.seen().size(), 2U);
}

}  // namespace
}  // namespace bev
