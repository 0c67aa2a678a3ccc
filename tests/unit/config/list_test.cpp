// Fields that hold several texts, from every source and back.
#include <gtest/gtest.h>

#include "config/parse/toml.h"
#include "unit/config/loading.h"

namespace bev {
namespace {

TextList path_of(const Args& args) {
  Findings findings;
  const LoadedConfig loaded = load_unchecked(args, {}, Purpose::Plan, findings);
  EXPECT_TRUE(findings.problems.empty()) << report(findings.problems);
  return loaded.config.data.path;
}

TEST(ListField, GoesOnToTheNextFlag) {
  EXPECT_EQ(path_of(small_model()), TextList{});
  EXPECT_EQ(path_of(small_model() + Args{"--data-path", "a"}), TextList{"a"});
  EXPECT_EQ(path_of(small_model() + Args{"--data-path", "0.5", "a", "0.5", "b", "--seed", "1"}),
            (TextList{"0.5", "a", "0.5", "b"}));
  EXPECT_EQ(path_of(small_model() + Args{"--data.path=a"}), TextList{"a"});
  EXPECT_EQ(path_of(small_model() + Args{"--data.path", "a b", "c\"d"}), (TextList{"a b", "c\"d"}));
  // The last one wins, as with every flag.
  EXPECT_EQ(path_of(small_model() + Args{"--data-path", "a", "b", "--data-path", "c"}),
            TextList{"c"});
  // Attached, it is one text, and what follows is something else.
  const TemporaryFile file("[train]\nseed = 7\n");
  EXPECT_EQ(path_of(small_model() + Args{"--data-path=a", file.path()}), TextList{"a"});
}

TEST(ListField, WithoutAText) {
  expect_problem(small_model() + Args{"--data-path"}, {"--data-path"});
  expect_problem(small_model() + Args{"--data-path", "--seed", "1"}, {"--data-path"});
  expect_problem(small_model() + Args{"--data-path", "\xFF"}, {"--data-path", "UTF-8"});
  expect_problem(small_model() + Args{"--data-path", "a", "\xFF"}, {"--data-path", "UTF-8"});
}

TEST(ListField, InAFile) {
  const auto path_in = [](const std::string& line) {
    const TemporaryFile file("[data]\n" + line + "\n");
    return path_of(small_model() + Args{file.path()});
  };
  EXPECT_EQ(path_in("path = \"a\""), TextList{"a"});
  EXPECT_EQ(path_in("path = [\"a\"]"), TextList{"a"});
  EXPECT_EQ(path_in("path = [\"a\", \"b c\"]"), (TextList{"a", "b c"}));
  EXPECT_EQ(path_in("path = []"), TextList{});
  for (const char* line : {"path = [1, 2]", "path = [\"a\", 1]", "path = [[\"a\"]]", "path = 1",
                           "path = true", "path = [\"a\\u0000\"]"}) {
    const TemporaryFile file(std::string("[data]\n") + line + "\n");
    expect_problem(small_model() + Args{file.path()}, {"data.path", "run.toml:2"});
  }
  const TemporaryFile wrong("[data]\nsplit = [\"1\", \"2\"]\n");
  expect_problem(small_model() + Args{wrong.path()}, {"data.split", "not a list"});
}

TEST(ListField, PrintsWhatReadsBack) {
  for (const TextList& list :
       {TextList{}, TextList{""}, TextList{"a"}, TextList{"a \"b\\", "\tc"}}) {
    Config config;
    config.data.path = list;
    Findings findings;
    Config again;
    for (const Assignment& a : parse_toml(print_config(config), "f", findings))
      set_value(again, a.field->path, a.value);
    for (const Problem& p : findings.problems) EXPECT_FALSE(mentions(p, "data.path"));
    EXPECT_EQ(again.data.path, list);
  }
}

}  // namespace
}  // namespace bev
