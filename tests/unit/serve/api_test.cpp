// What the server says to well-behaved clients.
#include <gtest/gtest.h>

#include "base/json.h"
#include "serve/api_server.h"
#include "support/marked_bytes.h"
#include "unit/serve/served.h"

namespace bev {
namespace {

using test::Reply;
using test::Served;

Json json_of(const Reply& reply) { return parse_json(reply.body, "the reply"); }

// The events of a stream, without [DONE], which must be the last.
std::vector<Json> events_of(const Reply& reply) {
  std::vector<Json> events;
  std::string_view rest = reply.body;
  bool is_done = false;
  while (!rest.empty()) {
    const size_t end = rest.find("\n\n");
    if (end == std::string_view::npos || !rest.starts_with("data: ") || is_done) {
      ADD_FAILURE() << "not an event: " << rest;
      break;
    }
    const std::string_view data = rest.substr(6, end - 6);
    is_done = data == "[DONE]";
    if (!is_done) events.push_back(parse_json(data, "an event"));
    rest.remove_prefix(end + 2);
  }
  EXPECT_TRUE(is_done) << reply.body;
  return events;
}

TEST(Api, CompletesAPrompt) {
  Served served;
  const Reply reply = served.complete(R"({"prompt": "hello", "max_tokens": 3, "seed": 5})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(reply.has("Content-Type: application/json"));
  const Json json = json_of(reply);
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["model"], "tiny");
  ASSERT_EQ(json["choices"].size(), 1U);
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["text"], "abc");
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(json["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(json["usage"]["completion_tokens"], 3);
  EXPECT_EQ(json["usage"]["total_tokens"], 8);
  const std::vector<GenerationRequest> seen = served.service.seen();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].prompt, (std::vector<int32_t>{'h', 'e', 'l', 'l', 'o'}));
  EXPECT_EQ(seen[0].seed, 5U);
  EXPECT_EQ(seen[0].end, kByteEod);
}

TEST(Api, ASeedDoesNotDependOnWhatIsAskedBesideIt) {
  Served served;
  served.complete(R"({"prompt": ["a", "b"], "n": 2, "seed": 5, "max_tokens": 1})");
  served.complete(R"({"prompt": ["a", "a"], "max_tokens": 1})");
  const std::vector<GenerationRequest> seen = served.service.seen();
  ASSERT_EQ(seen.size(), 6U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(seen[i].seed, 5U);
    EXPECT_EQ(seen[i].sample, static_cast<int64_t>(i % 2));
  }
  // Without one, two texts of one prompt differ.
  EXPECT_NE(seen[4].seed, seen[5].seed);
  // The texts of a request are one group, those of another another.
  const std::vector<uint64_t> groups = served.service.groups();
  EXPECT_EQ(groups[0], groups[3]);
  EXPECT_EQ(groups[4], groups[5]);
  EXPECT_NE(groups[3], groups[4]);
}

TEST(Api, EndsWhereTheModelEnds) {
  Served served;
  served.service.script = {'x', 'y', kByteEod};
  const Json json = json_of(served.complete(R"({"prompt": "p", "max_tokens": 9, "logprobs": 0})"));
  EXPECT_EQ(json["choices"][0]["text"], "xy");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(json["choices"][0]["logprobs"]["tokens"], (Json{"x", "y"}));
}

TEST(Api, CutsAtAStopStringAndCancels) {
  Served served;
  served.service.is_automatic = false;
  test::HttpClient client = served.client();
  client.send(test::request_text(
      "POST", "/v1/completions",
      R"({"prompt": "p", "max_tokens": 30, "stop": ["zz", "de"], "logprobs": 0})"));
  ASSERT_TRUE(test::soon([&] { return served.service.open() == 1; }));
  for (int i = 0; i < 5; ++i) served.service.step();
  const Reply reply = client.receive();
  const Json choice = json_of(reply)["choices"][0];
  EXPECT_EQ(choice["text"], "abc");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["logprobs"]["tokens"], (Json{"a", "b", "c"}));
  EXPECT_TRUE(test::soon([&] { return served.service.open() == 0; }));
}

TEST(Api, ATextThatIsCutDoesNotWaitForOthers) {
  Served served;
  served.service.is_automatic = false;
  test::HttpClient client = served.client();
  client.send(test::request_text("POST", "/v1/completions",
                                 R"({"prompt": "p", "n": 2, "max_tokens": 30, "stop": "c"})"));
  ASSERT_TRUE(test::soon([&] { return served.service.open() == 2; }));
  for (int i = 0; i < 3; ++i) served.service.step_one();
  EXPECT_TRUE(test::soon([&] { return served.service.open() == 1; }));
  for (int i = 0; i < 3; ++i) served.service.step();
  EXPECT_EQ(json_of(client.receive())["choices"][1]["text"], "ab");
}

TEST(Api, GivesLogprobs) {
  Served served;
  const Json json =
      json_of(served.complete(R"({"prompt": "pq", "max_tokens": 2, "logprobs": 2, "echo": true})"));
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["text"], "pqab");
  const Json& list = choice["logprobs"];
  EXPECT_EQ(list["tokens"], (Json{"p", "q", "a", "b"}));
  EXPECT_EQ(list["token_logprobs"], (Json{nullptr, -1.0, -0.5, -0.5}));
  EXPECT_EQ(list["text_offset"], (Json{0, 1, 2, 3}));
  ASSERT_EQ(list["top_logprobs"].size(), 4U);
  EXPECT_TRUE(list["top_logprobs"][0].is_null());
  EXPECT_EQ(list["top_logprobs"][2], (Json{{"A", -1.0}, {"B", -2.0}, {"a", -0.5}}));
  const Json none = json_of(served.complete(R"({"prompt": "p", "logprobs": 0})"));
  EXPECT_TRUE(none["choices"][0]["logprobs"]["top_logprobs"].is_null());
}

TEST(Api, EchoesAPromptWithoutGenerating) {
  Served served;
  const Json json = json_of(
      served.complete(R"({"prompt": [104, 105], "max_tokens": 0, "logprobs": 0, "echo": true})"));
  EXPECT_EQ(json["choices"][0]["text"], "hi");
  EXPECT_EQ(json["choices"][0]["logprobs"]["token_logprobs"], (Json{nullptr, -1.0}));
  EXPECT_EQ(json["usage"]["completion_tokens"], 0);
}

TEST(Api, AnEmptyPromptIsTheStartOfADocument) {
  Served served;
  EXPECT_EQ(served.complete(R"({"prompt": "", "max_tokens": 1})").status, 200);
  EXPECT_EQ(served.service.seen().at(0).prompt, std::vector<int32_t>{kByteEod});
}

TEST(Api, AnswersSeveralTextsInTheirOrder) {
  Served served;
  const Json json =
      json_of(served.complete(R"({"prompt": ["p", "q"], "n": 2, "max_tokens": 2, "echo": true})"));
  ASSERT_EQ(json["choices"].size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["text"], i < 2 ? "pab" : "qab");
  }
  EXPECT_EQ(json["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(json["usage"]["completion_tokens"], 8);
}

TEST(Api, StreamsTokenByToken) {
  Served served;
  served.service.is_automatic = false;
  test::HttpClient client = served.client();
  client.send(test::request_text("POST", "/v1/completions",
                                 R"({"prompt": "p", "max_tokens": 3, "stream": true,
                                     "stream_options": {"include_usage": true}})"));
  ASSERT_TRUE(test::soon([&] { return served.service.open() == 1; }));
  served.service.step();
  // The first one comes before the second is made.
  const std::string first = client.read_until("\n\n");
  EXPECT_NE(first.find("text/event-stream"), std::string::npos);
  EXPECT_NE(first.find("\"text\":\"a\""), std::string::npos) << first;
  served.service.step();
  EXPECT_NE(client.read_until("\n\n").find("\"text\":\"b\""), std::string::npos);
  served.service.step();
  const std::string last = client.read_until("[DONE]");
  EXPECT_NE(last.find("\"finish_reason\":\"length\""), std::string::npos);
  EXPECT_NE(last.find("\"total_tokens\":4"), std::string::npos);
}

TEST(Api, StreamsWholeCharactersOnly) {
  Served served;
  served.service.script = {0xE2, 0x82, 0xAC, 'x'};
  const Reply reply =
      served.complete(R"({"prompt": "p", "max_tokens": 4, "stream": true, "logprobs": 0})");
  const std::vector<Json> events = events_of(reply);
  ASSERT_EQ(events.size(), 2U) << reply.body;
  EXPECT_EQ(events[0]["choices"][0]["text"], "\xE2\x82\xAC");
  EXPECT_EQ(events[0]["choices"][0]["logprobs"]["tokens"],
            (Json{"bytes:\\xe2", "bytes:\\x82", "bytes:\\xac"}));
  EXPECT_EQ(events[1]["choices"][0]["logprobs"]["text_offset"], Json::array({1}));
  EXPECT_EQ(events[1]["choices"][0]["finish_reason"], "length");
}

TEST(Api, OldClientsGetStreamsWithoutChunks) {
  Served served;
  test::HttpClient client = served.client();
  const std::string body = R"({"prompt": "p", "max_tokens": 2, "stream": true})";
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  const Reply reply = client.receive();
  EXPECT_FALSE(reply.has("chunked"));
  EXPECT_EQ(events_of(reply).size(), 2U);
}

TEST(Api, TellsOfItsModel) {
  Served served;
  const Json list = json_of(served.ask("GET", "/v1/models"));
  ASSERT_EQ(list["data"].size(), 1U);
  EXPECT_EQ(list["data"][0]["id"], "tiny");
  EXPECT_EQ(json_of(served.ask("GET", "/v1/models/t%69ny"))["created"], 7);
  const Reply other = served.ask("GET", "/v1/models/huge");
  EXPECT_EQ(other.status, 404);
  EXPECT_EQ(json_of(other)["error"]["code"], "model_not_found");
  EXPECT_EQ(served.complete(R"({"prompt": "p", "model": "tiny"})").status, 200);
  EXPECT_EQ(served.complete(R"({"prompt": "p", "model": "huge"})").status, 404);
}

TEST(Api, ErrorsAreObjects) {
  Served served;
  const Reply reply = served.complete(R"({"prompt": "p", "temperature": -1})");
  EXPECT_EQ(reply.status, 400);
  const Json error = json_of(reply)["error"];
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_EQ(error["param"], "temperature");
  EXPECT_TRUE(error["code"].is_null());
  EXPECT_TRUE(error["message"].is_string());
  EXPECT_EQ(served.ask("GET", "/nothing").status, 404);
  const Reply method = served.ask("GET", "/v1/completions");
  EXPECT_EQ(method.status, 405);
  EXPECT_TRUE(method.has("Allow: POST"));
}

TEST(Api, RefusesWhatDoesNotFitTheModel) {
  Served served;
  const std::string text(60, 'x');
  const Reply reply = served.complete(R"({"prompt": ")" + text + R"(", "max_tokens": 5})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(json_of(reply)["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(served.complete(R"({"prompt": ")" + text + R"(", "max_tokens": 4})").status, 200);
}

TEST(Api, AFullQueueIsTooManyRequests) {
  Served served;
  served.service.is_automatic = false;
  served.service.most_open = 2;
  const Reply reply = served.complete(R"({"prompt": ["a", "b", "c"]})");
  EXPECT_EQ(reply.status, 429);
  EXPECT_TRUE(reply.has("Retry-After: 1"));
  EXPECT_EQ(json_of(reply)["error"]["type"], "rate_limit_error");
  // All or none.
  EXPECT_EQ(served.service.open(), 0U);
}

TEST(Api, AnswersAsMegatron) {
  Served served;
  const Reply reply = served.ask(
      "PUT", "/api", R"({"prompts": ["hi", "x"], "tokens_to_generate": 2, "logprobs": true})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json json = json_of(reply);
  EXPECT_EQ(json["text"], (Json{"hiab", "xab"}));
  EXPECT_EQ(json["segments"][0], (Json{"h", "i", "a", "b"}));
  EXPECT_EQ(json["logprobs"][0], (Json{-1.0, -0.5, -0.5}));
  const Json plain = json_of(served.ask(
      "POST", "/api",
      R"({"prompts": [""], "tokens_to_generate": 1, "add_BOS": true, "stop_token": 97})"));
  EXPECT_TRUE(plain["logprobs"].is_null());
  EXPECT_EQ(plain["text"], Json::array({""}));
  EXPECT_EQ(served.service.seen().back().prompt, std::vector<int32_t>{kByteEod});
  const Reply bad = served.ask("PUT", "/api", R"({"prompts": ["a"], "top_k": 2, "top_p": 0.5})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_TRUE(json_of(bad)["message"].is_string());
}

TEST(Api, SearchesAsMegatron) {
  Served served;
  const Reply reply =
      served.ask("PUT", "/api", R"({"prompts": ["hi"], "tokens_to_generate": 5, "beam_width": 2})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json json = json_of(reply);
  EXPECT_EQ(json["text"], (Json{"hia!", "hib!"}));
  EXPECT_EQ(json["segments"][1], (Json{"h", "i", "b", "!"}));
  EXPECT_EQ(json["scores"], (Json{-1.0, -2.0}));
  EXPECT_EQ(served.service.seen().at(0).tokens, 5);
  const Reply many = served.ask("PUT", "/api", R"({"prompts": ["hi"], "beam_width": 5})");
  EXPECT_EQ(many.status, 400);
  EXPECT_TRUE(many.has("too many beams"));
}

TEST(Api, HealthAsksTheModel) {
  ModelServerOptions options;
  options.api.health_valid = std::chrono::milliseconds(100000);
  Served served(options);
  const Reply reply = served.ask("GET", "/health");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json_of(reply)["status"], "ok");
  ASSERT_EQ(served.service.seen().size(), 1U);
  EXPECT_EQ(served.service.seen()[0].tokens, 1);
  // For some time one answer is enough for all.
  EXPECT_EQ(served.ask("GET", "/health").status, 200);
  EXPECT_EQ(served.service.seen().size(), 1U);
}

TEST(Api, HealthIsBadWhenNoTokenComes) {
  ModelServerOptions options;
  options.api.health_limit = std::chrono::milliseconds(60);
  Served served(options);
  served.service.is_automatic = false;
  const Reply reply = served.ask("GET", "/health");
  EXPECT_EQ(reply.status, 503);
  EXPECT_TRUE(reply.has("no token was made")) << reply.body;
  // The question does not stay.
  EXPECT_TRUE(test::soon([&] { return served.service.open() == 0; }));
}

TEST(Api, AFailedModelFailsAllAndEndsTheServer) {
  ModelServerOptions options;
  options.failure_limit = std::chrono::milliseconds(500);
  Served served(options);
  served.service.is_automatic = false;
  test::HttpClient whole = served.client(), stream = served.client();
  whole.send(test::request_text("POST", "/v1/completions", R"({"prompt": "p"})"));
  stream.send(test::request_text("POST", "/v1/completions", R"({"prompt": "p", "stream": true})"));
  ASSERT_TRUE(test::soon([&] { return served.service.open() == 2; }));
  served.service.step();
  served.service.fail("it broke");
  EXPECT_EQ(whole.receive().status, 500);
  const Reply streamed = stream.receive();
  EXPECT_EQ(streamed.status, 200);
  EXPECT_TRUE(streamed.has("server_error")) << streamed.body;
  const Reply health = served.ask("GET", "/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_TRUE(health.has("it broke"));
  EXPECT_EQ(served.complete(R"({"prompt": "p"})").status, 503);
  EXPECT_TRUE(test::soon([&] { return served.has_ended.load(); }));
}

TEST(Api, CountsForPrometheus) {
  Served served;
  served.complete(R"({"prompt": "p", "max_tokens": 2})");
  served.complete("{");
  served.ask("GET", "/what");
  const Reply reply = served.ask("GET", "/metrics");
  EXPECT_EQ(reply.status, 200);
  for (const std::string line :
       {"bevatron_requests_total{endpoint=\"/v1/completions\",code=\"200\"} 1\n",
        "bevatron_requests_total{endpoint=\"/v1/completions\",code=\"400\"} 1\n",
        "bevatron_requests_total{endpoint=\"other\",code=\"404\"} 1\n",
        "bevatron_request_seconds_count 1\n", "bevatron_request_seconds_bucket{le=\"+Inf\"} 1\n",
        "bevatron_first_token_seconds_count 1\n", "bevatron_generated_tokens_total 2\n",
        "bevatron_connections 1\n", "# TYPE bevatron_texts_waiting gauge\n",
        "process_resident_memory_bytes "})
    EXPECT_TRUE(reply.has(line)) << line << reply.body;
}

TEST(Api, HasAPageThatLoadsNothing) {
  Served served;
  const Reply reply = served.ask("GET", "/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.has("Content-Type: text/html"));
  EXPECT_TRUE(reply.has("default-src 'none'"));
  EXPECT_FALSE(reply.has("@NONCE@"));
  EXPECT_FALSE(reply.has("http://"));
  EXPECT_FALSE(reply.has("https://"));
  const size_t nonce = reply.head.find("'nonce-");
  ASSERT_NE(nonce, std::string::npos);
  EXPECT_TRUE(reply.has("<script nonce=\"" + reply.head.substr(nonce + 7, 16) + "\">"));
  const Reply head = served.ask("HEAD", "/");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.body.empty());
}

TEST(Api, LogsNoPrompts) {
  std::vector<HttpRecord> records;
  {
    ModelServerOptions options;
    options.api.log = [&](const HttpRecord& record) { records.push_back(record); };
    Served served(options);
    served.ask("POST", "/v1/completions?key=secret", R"({"prompt": "secret", "max_tokens": 2})");
    served.ask("GET", "/nothing");
  }
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].path, "/v1/completions");
  EXPECT_EQ(records[0].status, 200);
  EXPECT_EQ(records[0].note, "tokens 6+2");
  EXPECT_EQ(records[1].status, 404);
}

TEST(Api, ARequestHasItsTime) {
  ModelServerOptions options;
  options.api.request_limit = std::chrono::milliseconds(100);
  Served served(options);
  served.service.is_automatic = false;
  EXPECT_EQ(served.complete(R"({"prompt": "p"})").status, 504);
  EXPECT_TRUE(test::soon([&] { return served.service.open() == 0; }));
}

// What a vocabulary puts behind a whole text does not stand between a prompt and what continues it.
TEST(Api, NothingStandsBehindAPrompt) {
  test::MarkedBytes tokens;
  Served served({}, nullptr, &tokens);
  const Json answer = json_of(served.complete(R"({"prompt": "ab", "max_tokens": 1})"));
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
  const Json megatron = json_of(served.ask(
      "PUT", "/api", R"({"prompts": ["ab"], "tokens_to_generate": 1, "logprobs": true})"));
  EXPECT_EQ(megatron["segments"][0].size(), 4U) << megatron;
}

}  // namespace
}  // namespace bev
