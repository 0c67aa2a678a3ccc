// The server with a model behind it.
#include <gtest/gtest.h>

#include "base/json.h"
#include "infer/generation_service.h"
#include "unit/infer/stored_model.h"
#include "unit/serve/served.h"

namespace bev {
namespace {

using test::HttpClient;
using test::Reply;
using test::soon;

Config bytes_model() {
  Config config = test::tiny_llama();
  config.model.vocab = kByteVocab;
  return config;
}

struct OpRig {
  explicit OpRig(int64_t waiting = 100)
      : model(stored.load(2, 8)),
        decoder(model, {.rows = 2, .length = 8, .page = 3}),
        batcher(decoder),
        service(batcher, {.rows = 2, .waiting = waiting}),
        served({}, &service) {}

  test::StoredModel stored{bytes_model()};
  LoadedModel model;
  InferenceEngine decoder;
  ContinuousBatcher batcher;
  QueuedService service;
  test::Served served;
};

TEST(ServedModel, GeneratesTheSameForTheSameSeed) {
  OpRig rig;
  const std::string body =
      R"({"prompt": ["ab", "cd", "ef"], "n": 2, "max_tokens": 4, "seed": 3, "logprobs": 2})";
  const Reply first = rig.served.complete(body);
  ASSERT_EQ(first.status, 200) << first.body;
  const Json a = parse_json(first.body, "a"), b = parse_json(rig.served.complete(body).body, "b");
  EXPECT_EQ(a["choices"], b["choices"]);
  ASSERT_EQ(a["choices"].size(), 6U);
  // The third prompt alone is generated alike.
  const Json alone = parse_json(
      rig.served.complete(R"({"prompt": "ef", "n": 2, "max_tokens": 4, "seed": 3, "logprobs": 2})")
          .body,
      "alone");
  EXPECT_EQ(alone["choices"][1]["text"], a["choices"][5]["text"]);
  EXPECT_EQ(alone["choices"][1]["logprobs"]["tokens"], a["choices"][5]["logprobs"]["tokens"]);
}

TEST(ServedModel, AStreamHasTheTextOfTheWhole) {
  OpRig rig;
  const std::string fields = R"("prompt": "ab", "max_tokens": 6, "seed": 3)";
  const Json whole =
      parse_json(rig.served.complete("{" + fields + "}").body, "whole")["choices"][0];
  const Reply stream = rig.served.complete("{" + fields + ", \"stream\": true}");
  std::string text;
  std::string_view rest = stream.body;
  while (rest.starts_with("data: {")) {
    const size_t end = rest.find("\n\n");
    const Json event = parse_json(rest.substr(6, end - 6), "event");
    text += event["choices"][0]["text"].get<std::string>();
    rest.remove_prefix(end + 2);
  }
  EXPECT_EQ(rest, "data: [DONE]\n\n");
  EXPECT_EQ(text, whole["text"].get<std::string>());
}

TEST(ServedModel, IsWell) {
  OpRig rig;
  EXPECT_EQ(rig.served.ask("GET", "/health").status, 200);
  // It is counted after the step, which the reply does not wait for.
  EXPECT_TRUE(soon([&] { return rig.service.counts().finished == 1; }));
}

TEST(ServedModel, ManyClientsWhoLeaveHoldNothing) {
  OpRig rig;
  for (int round = 0; round < 10; ++round) {
    std::vector<HttpClient> clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(rig.served.client());
      clients.back().send(
          test::request_text("POST", "/v1/completions",
                             R"({"prompt": "ab", "max_tokens": 6, "n": 3, "stream": true})"));
    }
    for (HttpClient& client : clients) client.reset();
  }
  EXPECT_TRUE(soon([&] {
    const ServiceCounts counts = rig.service.counts();
    return counts.waiting + counts.running == 0 && counts.free_pages == counts.pages &&
           rig.served.server->connections() == 0;
  }));
}

}  // namespace
}  // namespace bev
