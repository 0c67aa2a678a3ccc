// The server of a BERT.
#include <gtest/gtest.h>

#include <cstring>

#include "base/json.h"
#include "infer/encoder_service.h"
#include "serve/encoder_job.h"
#include "unit/infer/tiny_berts.h"
#include "unit/serve/served.h"

namespace bev {
namespace {

using test::Reply;
using test::soon;

struct BertRig {
  explicit BertRig(int64_t waiting = 100, bool has_lm_head = true)
      : model(stored.load(2, 9)), text(stored.folder()), service(model, waiting) {
    Socket listener = listen_on("127.0.0.1", 0);
    port = address_here(listener.get()).port();
    ServedModel served;
    served.name = "tiny";
    served.bert = &text;
    served.encoder = &service;
    served.has_lm_head = has_lm_head;
    served.limits = {.context = 9, .max_tokens = 9, .texts = 8, .vocab = 29, .candidates = 20};
    server = std::make_unique<ModelServer>(std::move(listener), served, ModelServerOptions{});
    thread = std::thread([this] { server->run(); });
  }
  ~BertRig() {
    server->stop();
    thread.join();
    server.reset();
  }

  Reply post(std::string_view path, std::string_view body) const {
    return test::HttpClient(port).ask("POST", path, body, "");
  }
  Reply get(std::string_view path) const { return test::HttpClient(port).ask("GET", path, "", ""); }

  test::StoredBert stored;
  LoadedModel model;
  BertText text;
  EncoderService service;
  int port = 0;
  std::unique_ptr<ModelServer> server;
  std::thread thread;
};

// Fails when embeddings are not those of the model, or come in another order than the inputs.
TEST(ServedBert, EmbedsAsOpenAiDoes) {
  BertRig rig;
  const Reply reply =
      rig.post("/v1/embeddings", R"({"input": ["paris is", "a", "the capital of"]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json json = parse_json(reply.body, "reply");
  EXPECT_EQ(json["object"], "list");
  EXPECT_EQ(json["model"], "tiny");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 4 + 3 + 5);
  ASSERT_EQ(json["data"].size(), 3U);
  LoadedModel model = rig.stored.load(1, 9);
  EncoderPass pass(model);
  BertText text(rig.stored.folder());
  std::vector<EncoderInput> inputs;
  for (const char* line : {"paris is", "a", "the capital of"})
    inputs.push_back({.ids = text.wrapped(text.tokens(line))});
  const auto expected = embed_texts(pass, inputs, {.pooling = Pooling::Mean});
  for (size_t i = 0; i < 3; ++i) {
    const Json& entry = json["data"][i];
    EXPECT_EQ(entry["object"], "embedding");
    EXPECT_EQ(entry["index"], i);
    const auto values = entry["embedding"].get<std::vector<double>>();
    ASSERT_EQ(values.size(), expected[i].size());
    for (size_t at = 0; at < values.size(); ++at) EXPECT_NEAR(values[at], expected[i][at], 1e-6);
  }
  // One text, as ids, pooled otherwise, as its client for Python asks for it.
  const Json one = parse_json(
      rig.post("/v1/embeddings",
               R"({"input": [2, 5, 6, 3], "pooling": "cls", "encoding_format": "base64"})")
          .body,
      "one");
  const auto cls = embed_texts(pass, inputs, {.pooling = Pooling::Cls});
  EXPECT_EQ(one["data"][0]["embedding"].get<std::string>(),
            base64({reinterpret_cast<const char*>(cls[0].data()), cls[0].size() * sizeof(float)}));
}

TEST(ServedBert, FillsMasks) {
  BertRig rig;
  const Reply reply =
      rig.post("/v1/fill-mask", R"({"input": "Paris is the [MASK] of [MASK].", "top_k": 3})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json json = parse_json(reply.body, "reply");
  const Json& masks = json["data"][0]["masks"];
  ASSERT_EQ(masks.size(), 2U);
  EXPECT_EQ(masks[0]["position"], 4);
  EXPECT_EQ(masks[1]["position"], 6);
  ASSERT_EQ(masks[1]["candidates"].size(), 3U);
  EXPECT_GE(masks[0]["candidates"][0]["probability"], masks[0]["candidates"][1]["probability"]);
  EXPECT_TRUE(masks[0]["candidates"][0]["token"].is_string());
}

// Fails when a request that this model cannot answer is not refused with a word for what can be.
TEST(ServedBert, RefusesWhatABertCannotDo) {
  BertRig rig;
  for (const char* path : {"/v1/completions", "/api"}) {
    const Reply reply = rig.post(path, R"({"prompt": "a"})");
    EXPECT_EQ(reply.status, 400);
    EXPECT_TRUE(reply.has("needs a causal language model")) << reply.body;
  }
  const auto refused = [&](const char* path, const char* body, const char* message) {
    const Reply reply = rig.post(path, body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_TRUE(reply.has(message)) << reply.body;
  };
  refused("/v1/embeddings", R"({"input": "paris is the capital of france . a ."})",
          "context_length_exceeded");
  refused("/v1/embeddings", R"({"input": "a", "dimensions": 4})", "leave dimensions out");
  refused("/v1/embeddings", R"({"input": "a", "pooling": "max"})", "pooling must be");
  refused("/v1/embeddings", R"({"input": [29]})", "not one of 0 to 28");
  refused("/v1/fill-mask", R"({"input": "paris"})", "has no [MASK]");
  refused("/v1/fill-mask", R"({"inputs": "paris"})", "did you mean input?");
  refused("/v1/fill-mask", R"({"input": ["[MASK] [MASK]", "[MASK]"], "top_k": 7})",
          "3 masks with top_k 7 have 21 candidates; a request may have 20 at most");
  EXPECT_EQ(rig.post("/v1/embeddings", R"({"input": "a", "model": "other"})").status, 404);
}

TEST(ServedBert, WithoutAnLmHeadOnlyEmbeds) {
  BertRig rig(100, false);
  EXPECT_EQ(rig.post("/v1/embeddings", R"({"input": "a"})").status, 200);
  EXPECT_TRUE(rig.post("/v1/fill-mask", R"({"input": "[MASK]"})").has("without an LM head"));
}

TEST(ServedBert, IsWellAndCounts) {
  BertRig rig;
  EXPECT_EQ(rig.get("/health").status, 200);
  EXPECT_EQ(rig.post("/v1/embeddings", R"({"input": ["a", "a"]})").status, 200);
  EXPECT_TRUE(soon([&] { return rig.service.counts().finished == 3; }));
  EXPECT_TRUE(rig.get("/metrics").has("bevatron_prompt_tokens_total 8"));
  EXPECT_TRUE(rig.get("/v1/models").has("\"id\":\"tiny\""));
}

TEST(ServedGpt, RefusesWhatNeedsABert) {
  const test::Served served;
  for (const char* path : {"/v1/embeddings", "/v1/fill-mask"}) {
    const Reply reply = served.ask("POST", path, R"({"input": "a"})");
    EXPECT_EQ(reply.status, 400);
    EXPECT_TRUE(reply.has("needs a BERT")) << reply.body;
  }
}

// Fails when a queue without end is taken, or a model that throws leaves a client waiting.
TEST(EncoderService, RefusesWhatDoesNotFitItsQueueAndFailsAsAWhole) {
  const test::StoredBert stored;
  LoadedModel model = stored.load(1, 9);
  EncoderService service(model, 2);
  std::mutex mutex;
  int answered = 0, failed = 0;
  const auto sink = [&](const EncoderResult* result) {
    const std::lock_guard lock(mutex);
    (result != nullptr ? answered : failed) += 1;
  };
  const EncoderRequest good{.inputs = {{.ids = {2, 5, 3}}}, .pooling = Pooling::Mean};
  std::vector<EncoderService::Answer> kept;
  kept.push_back(service.submit(good, sink));
  EXPECT_TRUE(soon([&] {
    const std::lock_guard lock(mutex);
    return answered == 1;
  }));
  // An id that the model does not have.
  kept.push_back(service.submit({.inputs = {{.ids = {99}}}, .pooling = Pooling::Mean}, sink));
  EXPECT_TRUE(soon([&] {
    const std::lock_guard lock(mutex);
    return failed == 1;
  }));
  EXPECT_TRUE(soon([&] { return !service.failure().empty(); }));
  EXPECT_EQ(service.submit(good, sink).ticket, nullptr);
  EXPECT_NE(service.error(), nullptr);
}

}  // namespace
}  // namespace bev
