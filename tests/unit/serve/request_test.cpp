#include <gtest/gtest.h>

#include "serve/api_requests.h"

namespace bev {
namespace {

const RequestLimits kLimits{.context = 64, .max_tokens = 50, .texts = 8, .vocab = 257};

CompletionRequest good(std::string_view body) {
  const auto read = read_completion_request(body, kLimits);
  if (const ApiError* error = std::get_if<ApiError>(&read)) {
    ADD_FAILURE() << body << ": " << error->message;
    return {};
  }
  return std::get<CompletionRequest>(read);
}

ApiError bad(std::string_view body) {
  const auto read = read_completion_request(body, kLimits);
  if (const ApiError* error = std::get_if<ApiError>(&read)) return *error;
  ADD_FAILURE() << body << " was taken";
  return {};
}

TEST(CompletionRequest, HasTheDefaultsOfOpenAi) {
  const CompletionRequest r = good(R"({"prompt": "hello"})");
  ASSERT_EQ(r.prompts.size(), 1U);
  EXPECT_EQ(r.prompts[0].text, "hello");
  EXPECT_FALSE(r.prompts[0].is_ids);
  EXPECT_EQ(r.max_tokens, 16);
  EXPECT_EQ(r.samples, 1);
  EXPECT_EQ(r.choice.temperature, 1);
  EXPECT_EQ(r.choice.top_p, 1);
  EXPECT_FALSE(r.seed);
  EXPECT_FALSE(r.logprobs);
  EXPECT_FALSE(r.echo);
  EXPECT_FALSE(r.streams);
}

TEST(CompletionRequest, TakesEveryField) {
  const CompletionRequest r = good(
      R"({"model": "m", "prompt": ["a", "b"], "max_tokens": 7, "temperature": 0.5, "top_p": 0.25,
          "n": 3, "stream": true, "stream_options": {"include_usage": true}, "logprobs": 2,
          "echo": true, "stop": ["x", "y"], "seed": -9, "presence_penalty": 0,
          "frequency_penalty": 0.0, "best_of": 3, "suffix": null, "user": "u", "logit_bias": {},
          "top_k": 5, "min_p": 0.125, "repetition_penalty": 1.5})");
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(r.prompts.size(), 2U);
  EXPECT_EQ(r.max_tokens, 7);
  EXPECT_EQ(r.samples, 3);
  EXPECT_EQ(r.choice.temperature, 0.5);
  EXPECT_EQ(r.choice.top_p, 0.25);
  EXPECT_EQ(r.choice.top_k, 5);
  EXPECT_EQ(r.choice.min_p, 0.125);
  EXPECT_EQ(r.choice.repetition_penalty, 1.5);
  EXPECT_TRUE(r.streams);
  EXPECT_TRUE(r.includes_usage);
  EXPECT_EQ(r.logprobs, 2);
  EXPECT_TRUE(r.echo);
  EXPECT_EQ(r.stops, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(r.seed, static_cast<uint64_t>(-9));
}

TEST(CompletionRequest, TakesFourKindsOfPrompts) {
  EXPECT_EQ(good(R"({"prompt": [1, 2, 256]})").prompts[0].ids, (std::vector<int32_t>{1, 2, 256}));
  const CompletionRequest lists = good(R"({"prompt": [[1], [2, 3]]})");
  ASSERT_EQ(lists.prompts.size(), 2U);
  EXPECT_EQ(lists.prompts[1].ids, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(good(R"({"prompt": "x", "stop": "y"})").stops, std::vector<std::string>{"y"});
  EXPECT_EQ(good(R"({"prompt": ""})").prompts.size(), 1U);
}

TEST(CompletionRequest, RefusesEachFieldOutOfItsRange) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"("max_tokens": 51)", "max_tokens"},
      {R"("max_tokens": -1)", "max_tokens"},
      {R"("max_tokens": 1.5)", "max_tokens"},
      {R"("max_tokens": "5")", "max_tokens"},
      {R"("max_tokens": 18446744073709551615)", "max_tokens"},
      {R"("temperature": -0.1)", "temperature"},
      {R"("temperature": 101)", "temperature"},
      {R"("temperature": "hot")", "temperature"},
      {R"("top_p": 1.01)", "top_p"},
      {R"("top_k": 258)", "top_k"},
      {R"("min_p": -1)", "min_p"},
      {R"("repetition_penalty": 0)", "repetition_penalty"},
      {R"("n": 0)", "n"},
      {R"("n": 9)", "n"},
      {R"("logprobs": 6)", "logprobs"},
      {R"("logprobs": true)", "logprobs"},
      {R"("echo": 1)", "echo"},
      {R"("stream": "yes")", "stream"},
      {R"("stream_options": {})", "stream_options"},
      {R"("stream": true, "stream_options": {"x": 1})", "stream_options.x"},
      {R"("stop": "")", "stop"},
      {R"("stop": [1])", "stop"},
      {R"("stop": ["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])", "stop"},
      {R"("presence_penalty": 1)", "presence_penalty"},
      {R"("frequency_penalty": 0.1)", "frequency_penalty"},
      {R"("best_of": 2)", "best_of"},
      {R"("suffix": "x")", "suffix"},
      {R"("logit_bias": {"5": 1})", "logit_bias"},
      {R"("seed": 0.5)", "seed"},
      {R"("seed": 18446744073709551615)", "seed"},
      {R"("user": 1)", "user"},
      {R"("model": 1)", "model"},
      {R"("max_token": 5)", "max_token"},
  };
  for (const auto& [field, param] : cases) {
    const ApiError error = bad(R"({"prompt": "x", )" + field + "}");
    EXPECT_EQ(error.param, param) << field << ": " << error.message;
    EXPECT_EQ(error.status, 400);
  }
  EXPECT_NE(bad(R"({"prompt": "x", "max_token": 5})").message.find("did you mean max_tokens?"),
            std::string::npos);
}

// What is missing may stand there under a misspelt name: that is said first.
TEST(CompletionRequest, NamesAnUnknownFieldBeforeAllElse) {
  const ApiError misspelt = bad(R"({"promt": "x"})");
  EXPECT_EQ(misspelt.param, "promt");
  EXPECT_EQ(misspelt.message, "there is no field \"promt\"; did you mean prompt?");
  EXPECT_EQ(bad(R"({"prompt": 5, "max_token": 5})").param, "max_token");
  EXPECT_EQ(bad(R"({"prompt": "x", "n": 0, "zzzzzz": 5})").message, "there is no field \"zzzzzz\"");
  EXPECT_EQ(bad("[1]").message, "the body must be a JSON object");
}

TEST(CompletionRequest, RefusesPromptsThatAreNone) {
  for (const std::string prompt :
       {"5", "[]", "[[]]", "{}", "[1, \"a\"]", "[[1], \"a\"]", "[257]", "[-1]", "[1.5]", "true",
        "[4294967297]", "[18446744073709551615]", "[[[1]]]",
        R"(["1","2","3","4","5","6","7","8","9"])"})
    EXPECT_EQ(bad("{\"prompt\": " + prompt + "}").param, "prompt") << prompt;
  EXPECT_EQ(bad("{}").param, "prompt");
  std::string long_list = "[0";
  for (int i = 0; i < 64; ++i) long_list += ", 0";
  EXPECT_EQ(bad("{\"prompt\": " + long_list + "]}").param, "prompt");
  // Each is allowed, not both.
  EXPECT_EQ(bad(R"({"prompt": ["a", "b"], "n": 5})").param, "n");
}

TEST(CompletionRequest, RefusesWhatIsNoJson) {
  for (const std::string body : {"", "{", "[1]", "5", "\xff", R"({"prompt": "x", "prompt": "y"})",
                                 R"({"prompt": "x"} z)", R"({"prompt": [[[[[[[[[[1]]]]]]]]]]})"}) {
    const ApiError error = bad(body);
    EXPECT_EQ(error.status, 400) << body;
    EXPECT_FALSE(error.message.empty());
  }
}

MegatronRequest good_megatron(std::string_view body) {
  const auto read = read_megatron_request(body, kLimits);
  if (const ApiError* error = std::get_if<ApiError>(&read)) {
    ADD_FAILURE() << body << ": " << error->message;
    return {};
  }
  return std::get<MegatronRequest>(read);
}

TEST(MegatronRequest, NamesAnUnknownFieldBeforeAllElse) {
  const auto read = read_megatron_request(R"({"prompt": ["x"]})", kLimits);
  ASSERT_TRUE(std::holds_alternative<ApiError>(read));
  EXPECT_EQ(std::get<ApiError>(read).message,
            "there is no field \"prompt\"; did you mean prompts?");
}

TEST(MegatronRequest, HasItsDefaults) {
  const MegatronRequest r = good_megatron(R"({"prompts": ["a"], "tokens_to_generate": 3})");
  EXPECT_EQ(r.tokens, 3);
  EXPECT_FALSE(r.logprobs);
  EXPECT_EQ(r.choice.temperature, 1);
  EXPECT_EQ(r.choice.top_k, 0);
  EXPECT_EQ(r.choice.top_p, 1);
  EXPECT_EQ(r.choice.top_p_decay, 1);
  EXPECT_FALSE(r.adds_begin);
  EXPECT_FALSE(r.seed);
  EXPECT_FALSE(r.end);
  EXPECT_EQ(r.beams, 0);
  EXPECT_EQ(good_megatron(R"({"prompts": ["a"]})").tokens, 50);  // 64, but for the limit
}

TEST(MegatronRequest, TakesEveryField) {
  const MegatronRequest r = good_megatron(
      R"({"prompts": ["a", "b"], "tokens_to_generate": 5, "logprobs": true, "temperature": 2,
          "top_k": 0, "top_p": 0.5, "top_p_decay": 0.75, "top_p_bound": 0.25, "add_BOS": true,
          "stop_on_double_eol": true, "stop_on_eol": true, "prevent_newline_after_colon": false,
          "random_seed": 3, "no_log": true, "stop_token": 10, "length_penalty": 1})");
  EXPECT_EQ(r.prompts.size(), 2U);
  EXPECT_TRUE(r.logprobs);
  EXPECT_EQ(r.choice.temperature, 2);
  EXPECT_EQ(r.choice.top_p, 0.5);
  EXPECT_EQ(r.choice.top_p_decay, 0.75);
  EXPECT_EQ(r.choice.top_p_bound, 0.25);
  EXPECT_TRUE(r.adds_begin);
  EXPECT_EQ(r.stops, (std::vector<std::string>{"\n\n", "\n"}));
  EXPECT_EQ(r.seed, 3U);
  EXPECT_EQ(r.end, 10);
}

TEST(MegatronRequest, HasItsRules) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({})", "prompts"},
      {R"({"prompts": []})", "prompts"},
      {R"({"prompts": "a"})", "prompts"},
      {R"({"prompts": [1]})", "prompts"},
      {R"({"prompts": [""]})", "prompts"},
      {R"({"prompts": ["a"], "max_len": 5})", "max_len"},
      {R"({"sentences": ["a"]})", "sentences"},
      {R"({"prompts": ["a"], "tokens_to_generate": 0})", "tokens_to_generate"},
      {R"({"prompts": ["a"], "tokens_to_generate": -1})", "tokens_to_generate"},
      {R"({"prompts": ["a"], "temperature": 0})", "temperature"},
      {R"({"prompts": ["a"], "temperature": 101})", "temperature"},
      {R"({"prompts": ["a"], "top_k": 1001})", "top_k"},
      {R"({"prompts": ["a"], "top_k": 5, "top_p": 0.5})", "top_p"},
      {R"({"prompts": ["a"], "top_p": 1.5})", "top_p"},
      {R"({"prompts": ["a"], "top_p_decay": 0.5})", "top_p_decay"},
      {R"({"prompts": ["a"], "top_p": 0.5, "top_p_bound": 0.75})", "top_p_bound"},
      {R"({"prompts": ["a"], "prevent_newline_after_colon": true})", "prevent_newline_after_colon"},
      {R"({"prompts": ["a"], "random_seed": -2})", "random_seed"},
      {R"({"prompts": ["a"], "stop_token": 257})", "stop_token"},
      {R"({"prompts": ["a"], "beam_width": 0})", "beam_width"},
      {R"({"prompts": ["a", "b"], "beam_width": 2})", "beam_width"},
      {R"({"prompts": ["a"], "what": 2})", "what"},
  };
  for (const auto& [body, param] : cases) {
    const auto read = read_megatron_request(body, kLimits);
    const ApiError* error = std::get_if<ApiError>(&read);
    ASSERT_NE(error, nullptr) << body;
    EXPECT_EQ(error->param, param) << body << ": " << error->message;
  }
  EXPECT_EQ(good_megatron(R"({"prompts": [""], "add_BOS": true})").prompts.size(), 1U);
  EXPECT_FALSE(good_megatron(R"({"prompts": ["a"], "random_seed": -1})").seed);
}

}  // namespace
}  // namespace bev
