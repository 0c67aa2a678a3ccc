#include "config/blend.h"

#include "unit/config/loading.h"

namespace bev {
namespace {

TEST(Blend, WithAndWithoutWeights) {
  const ParsedBlend weighted = parse_blend({"0.3", "a", "0.7", "b"});
  ASSERT_TRUE(weighted.blend.has_value());
  EXPECT_EQ(weighted.blend->prefixes, (TextList{"a", "b"}));
  EXPECT_EQ(weighted.blend->weights, (std::vector<double>{0.3, 0.7}));
  EXPECT_EQ(blend_of({"a", "b", "c"}).weights.size(), 0u);
  EXPECT_EQ(blend_of({"a", "b", "c"}).prefixes.size(), 3u);
  EXPECT_TRUE(blend_of({"a"}).is_one_file());
  EXPECT_FALSE(blend_of({"1", "a"}).is_one_file());
  EXPECT_FALSE(blend_of({"a", "b"}).is_one_file());
}

TEST(Blend, ListsThatAreNone) {
  for (const auto& [list, why] :
       {std::pair<TextList, std::string>{{"0.3", "a", "0.7"}, "3 entries are not pairs"},
        {{"0.3", "a", "b", "0.7"}, "\"b\" stands where a weight should"},
        {{"a", "0.3"}, "\"a\" stands where a weight should"},
        {{"0", "a"}, "the weight of \"a\" is 0"},
        {{"-1", "a", "2", "b"}, "the weight of \"a\" is -1"},
        {{"nan", "a", "1", "b"}, "\"nan\" stands where a weight should"},
        {{"1", ""}, "empty"},
        {{"a", ""}, "empty"}}) {
    const ParsedBlend parsed = parse_blend(list);
    EXPECT_FALSE(parsed.blend.has_value());
    EXPECT_NE(parsed.why.find(why), std::string::npos) << parsed.why;
  }
}

Args blend_training(const Args& more) {
  return small_model() + Args{"--train-iters", "100", "--lr", "1e-3"} + more;
}

TEST(BlendFiles, BecomeTheListsTheyHold) {
  const TemporaryFile list("0.3 a\n 0.7\tb\n", "blend.txt");
  const LoadedConfig one =
      load(blend_training({"--data-args-path", list.path()}), {}, Purpose::Train);
  EXPECT_EQ(one.config.data.path, (TextList{"0.3", "a", "0.7", "b"}));
  EXPECT_EQ(one.config.data.args_path, "");
  EXPECT_EQ(one.origins.at("data.path").text, "--data-args-path");
  const TemporaryFile json(R"({"train": [0.5, "a", "2", "b"], "valid": ["c"], "test": null})",
                           "blend.json");
  const LoadedConfig three =
      load(blend_training({"--per-split-data-args-path", json.path()}), {}, Purpose::Train);
  EXPECT_EQ(three.config.data.train_path, (TextList{"0.5", "a", "2", "b"}));
  EXPECT_EQ(three.config.data.valid_path, (TextList{"c"}));
  EXPECT_TRUE(three.config.data.test_path.empty());
  EXPECT_EQ(three.config.data.split_args_path, "");
}

TEST(BlendFiles, Damaged) {
  const auto refused = [](const std::string& flag, const std::string& content,
                          const std::string& why) {
    const TemporaryFile file(content, "blend");
    expect_problem(blend_training({flag, file.path()}), {flag, why}, Purpose::Train);
  };
  refused("--data-args-path", " \n", "it names no token file");
  refused("--data-args-path", "a \xFF", "UTF-8");
  refused("--per-split-data-args-path", "{\"train\": [\"a\"", "blend");
  refused("--per-split-data-args-path", "[]", "not an object");
  refused("--per-split-data-args-path", "{\"valid\": [\"a\"]}", "no list \"train\"");
  refused("--per-split-data-args-path", "{\"train\": \"a\"}", "\"train\" is not a list");
  refused("--per-split-data-args-path", "{\"train\": [[\"a\"]]}", "neither text nor a number");
  expect_problem(blend_training({"--data-args-path", "/none/blend"}), {"/none/blend"},
                 Purpose::Train);
  const TemporaryFile list("a", "blend.txt");
  expect_problem(blend_training({"--data-args-path", list.path(), "--data-path", "b"}),
                 {"the data is given twice", "data.args_path", "data.path"}, Purpose::Train);
}

TEST(DataRules, OrdersThatGoTogether) {
  expect_problem(blend_training({"--data-path", "a", "--dataloader-type", "cyclic"}),
                 {"cyclic", "data.order megatron"}, Purpose::Train);
  expect_problem(
      blend_training({"--data-path", "a", "--data.order", "megatron", "--seed", "4294967296"}),
      {"32 bits", "4294967295"}, Purpose::Train);
  const Args both{"--data-path",       "a",      "--data.order", "megatron",
                  "--dataloader-type", "cyclic", "--seed",       "4294967295"};
  EXPECT_TRUE(problems_of(blend_training(both), Purpose::Train).empty());
}

}  // namespace
}  // namespace bev
