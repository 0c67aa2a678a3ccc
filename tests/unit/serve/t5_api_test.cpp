// The server with a T5: the prompt is the encoder's text, the answer the decoder's.
#include <gtest/gtest.h>

#include "base/json.h"
#include "infer/generation_service.h"
#include "unit/infer/stored_t5.h"
#include "unit/serve/served.h"

namespace bev {
namespace {

using test::Reply;

Config bytes_t5() {
  Config config = test::tiny_huggingface_t5();
  config.model.vocab = kByteVocab;
  return config;
}

struct T5Rig {
  test::StoredT5 stored{bytes_t5()};
  LoadedModel model{stored.load()};
  InferenceEngine decoder{
      model, {.rows = 2, .length = test::kT5Decoder, .source = test::kT5Source, .page = 3}};
  ContinuousBatcher batcher{decoder};
  QueuedService service{batcher,
                        {.rows = 2,
                         .waiting = 100,
                         .search = [this](std::span<const int32_t> prompt, const SourceText& source,
                                          const BeamOptions& options, FunctionRef<bool()> goes_on) {
                           return beam_search(decoder, prompt, source, options, goes_on);
                         }}};
  test::Served served{{}, &service, nullptr, SourceFormat(stored.folder(), test::kT5Source)};

  Json completion(const std::string& fields) const {
    const Reply reply = served.complete("{" + fields + "}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    return parse_json(reply.body, "completion");
  }
  Json megatron(const std::string& fields) const {
    const Reply reply = served.ask("PUT", "/api", "{" + fields + "}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    return parse_json(reply.body, "answer");
  }
};

TEST(ServedT5, CompletesPrompts) {
  const T5Rig rig;
  const std::string fields = R"("max_tokens": 5, "seed": 3, "logprobs": 2)";
  const Json all = rig.completion(R"("prompt": ["ab", "cdefgh", "x"], "n": 2, )" + fields);
  ASSERT_EQ(all["choices"].size(), 6U);
  // Each prompt, and its end.
  EXPECT_EQ(all["usage"]["prompt_tokens"], 3 + 7 + 2);
  EXPECT_NE(all["choices"][0]["text"], all["choices"][2]["text"]);
  const Json alone = rig.completion(R"("prompt": "x", "n": 2, )" + fields);
  for (const char* key : {"text", "logprobs", "finish_reason"})
    EXPECT_EQ(alone["choices"][1][key], all["choices"][5][key]) << key;
  const Json ids = rig.completion(R"("prompt": [120, 1], "n": 2, )" + fields);
  EXPECT_EQ(ids["choices"][1]["text"], alone["choices"][1]["text"]);
}

TEST(ServedT5, StreamsWhatItCompletes) {
  const T5Rig rig;
  const std::string fields = R"("prompt": "ab", "max_tokens": 8, "seed": 3)";
  const Json whole = rig.completion(fields)["choices"][0];
  const Reply stream = rig.served.complete("{" + fields + ", \"stream\": true}");
  std::string text;
  std::string_view rest = stream.body;
  while (rest.starts_with("data: {")) {
    const size_t end = rest.find("\n\n");
    text += parse_json(rest.substr(6, end - 6), "event")["choices"][0]["text"].get<std::string>();
    rest.remove_prefix(end + 2);
  }
  EXPECT_EQ(rest, "data: [DONE]\n\n");
  EXPECT_EQ(text, whole["text"].get<std::string>());
}

TEST(ServedT5, AnswersAsMegatronsServer) {
  const T5Rig rig;
  const std::string fields = R"("tokens_to_generate": 4, "top_k": 1)";
  const Json answer = rig.megatron(R"("prompts": ["ab", "c"], "logprobs": true, )" + fields);
  ASSERT_EQ(answer["text"].size(), 2U);
  const Json greedy =
      rig.completion(R"("prompt": "c", "max_tokens": 4, "temperature": 0)")["choices"][0]["text"];
  EXPECT_EQ(answer["text"][1], greedy);
  EXPECT_EQ(answer["segments"][1].size(), 4U);
  EXPECT_EQ(answer["logprobs"][1].size(), 4U);
  const Json search = rig.megatron(R"("prompts": ["c"], "beam_width": 2, )" + fields);
  ASSERT_EQ(search["text"].size(), 2U);
  EXPECT_GE(search["scores"][0], search["scores"][1]);
  const Json one = rig.megatron(R"("prompts": ["c"], "beam_width": 1, )" + fields);
  EXPECT_EQ(one["text"][0], greedy);
}

TEST(ServedT5, RefusesWhatItHasNot) {
  const T5Rig rig;
  const auto expect_refusal = [&](const char* method, const char* path, const std::string& body,
                                  const char* why) {
    const Reply reply = rig.served.ask(method, path, body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_TRUE(reply.has(why)) << reply.body;
  };
  const char *const completions = "/v1/completions", *const api = "/api";
  expect_refusal("POST", completions, R"({"prompt": "a", "echo": true})", "echo");
  expect_refusal("POST", completions, R"({"prompt": ""})", "the prompt is empty");
  expect_refusal("POST", completions, R"({"prompt": "abcdefg", "max_tokens": 1})", "at most 7");
  expect_refusal("PUT", api, R"({"prompts": ["a"], "add_BOS": true})", "add_BOS");
  expect_refusal("PUT", api, R"({"prompts": ["a"], "tokens_to_generate": 0, "logprobs": true})",
                 "no probabilities");
  expect_refusal("PUT", api, R"({"prompts": ["abcdefg"]})", "at most 7");
}

TEST(ServedT5, IsWell) {
  const T5Rig rig;
  EXPECT_EQ(rig.served.ask("GET", "/health").status, 200);
}

}  // namespace
}  // namespace bev
