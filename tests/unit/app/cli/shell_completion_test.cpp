#include <gtest/gtest.h>

#include <array>

#include "app/cli/dispatch.h"
#include "base/error.h"
#include "config/megatron/megatron_flags.h"
#include "config/parse/field.h"
#include "config/parse/notation.h"

namespace bev::app {
namespace {

constexpr std::array kCompletedVerbs{
    Verb{"train", "trains", [](std::span<const std::string>) { return 0; }},
    Verb{"unheard-of", "made up", [](std::span<const std::string>) { return 0; }},
};

bool has_word(const std::string& text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const auto ends = [](char c) { return c == ' ' || c == '\n' || c == '"' || c == ')'; };
    if (at > 0 && ends(text[at - 1]) && ends(text[at + word.size()])) return true;
  }
  return false;
}

TEST(Completion, KnowsTheVerbsItIsGivenAndAllFlagsThatWork) {
  const std::string script = completion_script(kCompletedVerbs, "bash");
  for (const char* verb : {"train", "unheard-of", "help", "completion"})
    EXPECT_TRUE(has_word(script, verb)) << verb;
  for (const Field& field : fields()) {
    EXPECT_TRUE(has_word(script, "--" + field.path)) << field.path;
    for (const Alias& alias : field.about.aliases)
      EXPECT_TRUE(has_word(script, alias.flag)) << alias.flag;
    for (const std::string_view choice : field.choices)
      EXPECT_TRUE(has_word(script, choice)) << choice;
  }
  for (const FlagTopic& topic : megatron_topics())
    for (const MegatronFlag& flag : topic.flags)
      for (const std::string_view spelling : split_words(flag.flag))
        EXPECT_EQ(has_word(script, spelling), topic.kind == FlagClass::Noted) << spelling;
}

TEST(Completion, OtherShellsAreRefused) {
  EXPECT_THROW(completion_script(kCompletedVerbs, "fish"), Error);
  EXPECT_THROW(completion_script(kCompletedVerbs, ""), Error);
  const std::string zsh = completion_script(kCompletedVerbs, "zsh");
  EXPECT_NE(zsh.find("bashcompinit"), std::string::npos);
  // compinit looks for this as the first line of a file.
  EXPECT_EQ(zsh.find("#compdef bevatron\n"), 0u);
}

}  // namespace
}  // namespace bev::app
