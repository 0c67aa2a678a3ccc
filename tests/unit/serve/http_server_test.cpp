// Clients that are slow, greedy, rude or gone.
#include "serve/http/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "net/socket.h"
#include "unit/serve/served.h"

namespace bev {
namespace {

using std::chrono::milliseconds;
using test::HttpClient;
using test::Reply;
using test::request_text;
using test::Served;
using test::soon;

ModelServerOptions quick(milliseconds receive, milliseconds idle = milliseconds(75000),
                         milliseconds write = milliseconds(30000)) {
  ModelServerOptions options;
  options.http.receive = receive;
  options.http.idle = idle;
  options.http.write = write;
  options.http.linger = milliseconds(200);
  return options;
}

const std::string kStream = R"({"prompt": "p", "max_tokens": 40, "stream": true})";

TEST(HttpServer, AnswersManyRequestsOfOneConnection) {
  Served served;
  HttpClient client = served.client();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.ask("GET", "/v1/models").status, 200);
  const Reply last = client.ask("GET", "/v1/models", "", "Connection: close\r\n");
  EXPECT_TRUE(last.has("Connection: close"));
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(HttpServer, AnswersPipelinedRequestsInTheirOrder) {
  Served served;
  served.service.is_automatic = false;
  HttpClient client = served.client();
  client.send(request_text("POST", "/v1/completions", R"({"prompt": "p", "max_tokens": 1})") +
              request_text("GET", "/v1/models") + request_text("GET", "/nothing"));
  ASSERT_TRUE(soon([&] { return served.service.open() == 1; }));
  served.service.step();
  EXPECT_TRUE(client.receive().has("\"text\":\"a\""));
  EXPECT_TRUE(client.receive().has("\"object\":\"list\""));
  EXPECT_EQ(client.receive().status, 404);
}

TEST(HttpServer, RefusesLargeBodiesAndHeaders) {
  ModelServerOptions options;
  options.http.sizes = {.header_bytes = 1000, .body_bytes = 2000};
  Served served(options);
  HttpClient body = served.client();
  body.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n" +
      std::string(300000, 'x'));
  EXPECT_EQ(body.receive().status, 413);
  EXPECT_TRUE(body.is_closed_by_server());
  HttpClient header = served.client();
  header.send("GET / HTTP/1.1\r\nX: " + std::string(300000, 'x'));
  EXPECT_EQ(header.receive().status, 431);
  HttpClient nonsense = served.client();
  nonsense.send(std::string("\x16\x03\x01\x02", 4) + "\r\n\r\n");
  EXPECT_EQ(nonsense.receive().status, 400);
}

TEST(HttpServer, TellsWhoAsksWhetherToSend) {
  Served served;
  HttpClient client = served.client();
  const std::string body = R"({"prompt": "p"})";
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send(body);
  EXPECT_EQ(client.receive().status, 200);
}

// One byte now and then keeps no connection for ever.
TEST(HttpServer, ARequestHasToArriveInTime) {
  Served served(quick(milliseconds(300)));
  HttpClient slow = served.client();
  slow.send("POST /v1/completions HTTP/1.1\r\n");
  int sent = 0;
  for (; sent < 200 && !slow.has_reply(); ++sent) {
    slow.send("X");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_LT(sent, 200);
  EXPECT_EQ(slow.receive().status, 408);
  EXPECT_TRUE(soon([&] { return served.server->connections() == 0; }));
  // Nothing at all is not even answered.
  HttpClient silent = served.client();
  EXPECT_TRUE(silent.is_closed_by_server());
}

TEST(HttpServer, IdleConnectionsEnd) {
  Served served(quick(milliseconds(10000), milliseconds(150)));
  HttpClient client = served.client();
  EXPECT_EQ(client.ask("GET", "/v1/models").status, 200);
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(HttpServer, AClientThatGoesAwayWhileItWaitsFreesItsText) {
  for (const int how : {0, 1, 2}) {
    Served served;
    served.service.is_automatic = false;
    HttpClient client = served.client();
    client.send(request_text("POST", "/v1/completions", R"({"prompt": ["p", "q"]})"));
    ASSERT_TRUE(soon([&] { return served.service.open() == 2; }));
    if (how == 0) client.close();
    if (how == 1) client.reset();
    if (how == 2) client.half_close();
    EXPECT_TRUE(soon([&] { return served.service.open() == 0; })) << how;
    EXPECT_EQ(served.service.counts().cancelled, 2);
    EXPECT_TRUE(soon([&] { return served.server->connections() == 0; })) << how;
  }
}

TEST(HttpServer, AClientThatGoesAwayWhileItReadsFreesItsText) {
  for (const int how : {0, 1, 2}) {
    Served served;
    served.service.is_automatic = false;
    HttpClient client = served.client();
    client.send(request_text("POST", "/v1/completions", kStream));
    ASSERT_TRUE(soon([&] { return served.service.open() == 1; }));
    served.service.step();
    client.read_until("\n\n");
    if (how == 0) client.close();
    if (how == 1) client.reset();
    if (how == 2) client.half_close();
    EXPECT_TRUE(soon([&] { return served.service.open() == 0; })) << how;
  }
}

// Also behind requests that wait for their turn, for which there is no room any more.
TEST(HttpServer, TheEndIsNoticedBehindWhatWasSentAhead) {
  Served served;
  served.service.is_automatic = false;
  HttpClient client = served.client();
  client.send(request_text("POST", "/v1/completions", kStream));
  ASSERT_TRUE(soon([&] { return served.service.open() == 1; }));
  client.send(std::string(150000, 'x'));
  client.close();
  EXPECT_TRUE(soon([&] { return served.service.open() == 0; }));
}

TEST(HttpServer, AClientThatDoesNotReadIsLeft) {
  Served served(quick(milliseconds(10000), milliseconds(75000), milliseconds(200)));
  HttpClient client = served.client();
  client.receive_slowly(4096);
  // Pages until neither end has room for more.
  std::string pages;
  for (int i = 0; i < 600; ++i) pages += request_text("GET", "/");
  client.send(pages);
  ASSERT_TRUE(soon([&] { return served.server->connections() == 1; }));
  EXPECT_TRUE(soon([&] { return served.server->connections() == 0; }));
}

// Rather than cut off.
TEST(HttpServer, AnAnswerThatIsTooLargeIsToldSo) {
  std::mutex mutex;
  std::vector<int> logged;
  ModelServerOptions options;
  options.http.answer_bytes = 2000;
  options.api.log = [&](const HttpRecord& record) {
    const std::lock_guard lock(mutex);
    logged.push_back(record.status);
  };
  Served served(options);
  const std::string many = R"("max_tokens": 40, "logprobs": 5)";
  const Reply large = served.complete(R"({"prompt": "p", "n": 8, )" + many + "}");
  EXPECT_EQ(large.status, 400);
  EXPECT_TRUE(large.has("this server sends 2000 at most")) << large.body;
  EXPECT_TRUE(large.has("invalid_request_error"));
  const Reply megatron = served.ask(
      "PUT", "/api",
      R"({"prompts": ["p", "q", "r", "s"], "tokens_to_generate": 50, "logprobs": true})");
  EXPECT_EQ(megatron.status, 400);
  EXPECT_TRUE(megatron.body.starts_with(R"({"message":"the answer has )")) << megatron.body;
  EXPECT_EQ(served.complete(R"({"prompt": "p", "n": 8, "stream": true, )" + many + "}").status,
            200);
  EXPECT_EQ(served.complete(R"({"prompt": "p", "max_tokens": 3})").status, 200);
  EXPECT_TRUE(soon([&] {
    const std::lock_guard lock(mutex);
    return logged == std::vector<int>{400, 400, 200, 200};
  }));
}

// One large piece for each request; it is the last where the path says so.
class LargePieces final : public HttpHandler {
 public:
  std::unique_ptr<HttpJob> handle(HttpRequest request, HttpAnswer& answer) override {
    answer.begin({.status = 200});
    answer.write(std::string(size_t{32} << 20, 'x'));
    if (request.path == "/whole") answer.end();
    return std::make_unique<HttpJob>();
  }
  void finished(const HttpRecord& record) override { status = record.status; }
  HttpResponse error(const HttpRecord&, int code, const std::string& message) override {
    return {.status = code, .body = message};
  }

  std::atomic<int> status{0};
};

TEST(HttpServer, AStreamThatNobodyTakesIsNoSuccess) {
  for (const std::string path : {"/whole", "/endless"}) {
    LargePieces handler;
    HttpLimits limits;
    limits.answer_bytes = 1 << 20;
    Socket listener = listen_on("127.0.0.1", 0);
    const int port = address_here(listener.get()).port();
    HttpServer server(std::move(listener), limits, handler);
    std::thread thread([&] { server.run(); });
    HttpClient client(port);
    client.receive_slowly(4096);
    client.send(request_text("GET", path));
    EXPECT_TRUE(soon([&] { return handler.status != 0; }));
    EXPECT_EQ(handler.status, 499) << path;
    EXPECT_TRUE(soon([&] { return server.connections() == 0; }));
    server.stop();
    thread.join();
  }
}

TEST(HttpServer, TooManyConnectionsAreToldSo) {
  ModelServerOptions options = quick(milliseconds(10000));
  options.http.connections = 2;
  Served served(options);
  HttpClient first = served.client(), second = served.client();
  EXPECT_EQ(first.ask("GET", "/v1/models").status, 200);
  EXPECT_EQ(second.ask("GET", "/v1/models").status, 200);
  HttpClient third = served.client();
  const Reply reply = third.receive();
  EXPECT_EQ(reply.status, 503);
  EXPECT_TRUE(reply.has("Retry-After"));
  first.close();
  EXPECT_TRUE(soon([&] { return served.client().ask("GET", "/v1/models").status == 200; }));
}

TEST(HttpServer, DrainingFinishesWhatRuns) {
  Served served(quick(milliseconds(10000)));
  served.service.is_automatic = false;
  HttpClient idle = served.client(), busy = served.client();
  EXPECT_EQ(idle.ask("GET", "/v1/models").status, 200);
  busy.send(request_text("POST", "/v1/completions", R"({"prompt": "p", "max_tokens": 2})"));
  ASSERT_TRUE(soon([&] { return served.service.open() == 1; }));
  served.server->drain();
  EXPECT_TRUE(idle.is_closed_by_server());
  std::string why;
  EXPECT_FALSE(try_to_connect(resolve("127.0.0.1", served.port),
                              std::chrono::steady_clock::now() + milliseconds(500), why)
                   .is_open());
  EXPECT_FALSE(served.has_ended);
  served.service.step();
  served.service.step();
  const Reply reply = busy.receive();
  EXPECT_TRUE(reply.has("\"text\":\"ab\"")) << reply.body;
  EXPECT_TRUE(reply.has("Connection: close"));
  EXPECT_TRUE(soon([&] { return served.has_ended.load(); }));
}

TEST(HttpServer, DrainingHasItsTime) {
  ModelServerOptions options = quick(milliseconds(10000));
  options.drain_limit = milliseconds(100);
  Served served(options);
  served.service.is_automatic = false;
  HttpClient busy = served.client();
  busy.send(request_text("POST", "/v1/completions", R"({"prompt": "p"})"));
  ASSERT_TRUE(soon([&] { return served.service.open() == 1; }));
  served.server->drain();
  EXPECT_TRUE(soon([&] { return served.has_ended.load(); }));
  EXPECT_EQ(served.service.open(), 0U);
}

TEST(HttpServer, EndsWhenItIsAsked) {
  std::atomic<bool> is_asked{false};
  ModelServerOptions options;
  options.is_asked_to_end = [&] { return is_asked.load(); };
  Served served(options);
  EXPECT_EQ(served.ask("GET", "/v1/models").status, 200);
  EXPECT_FALSE(served.has_ended);
  is_asked = true;
  EXPECT_TRUE(soon([&] { return served.has_ended.load(); }));
}

}  // namespace
}  // namespace bev
