#include <gtest/gtest.h>

#include "app/generate/interactive_generation.h"

namespace bev::app {
namespace {

using Kind = InteractiveCommand::Kind;

TEST(InteractiveCommand, Prompts) {
  EXPECT_EQ(interactive_command("Once upon").kind, Kind::Prompt);
  EXPECT_EQ(interactive_command(" Once  upon ").text, " Once  upon ");
  EXPECT_EQ(interactive_command("").kind, Kind::Prompt);
  EXPECT_EQ(interactive_command("//usr/lib").kind, Kind::Prompt);
  EXPECT_EQ(interactive_command("//usr/lib").text, "/usr/lib");
  EXPECT_EQ(interactive_command("stop").kind, Kind::Prompt) << "not a word that ends anything";
}

TEST(InteractiveCommand, Commands) {
  EXPECT_EQ(interactive_command("/again").kind, Kind::Again);
  EXPECT_EQ(interactive_command("/help ").kind, Kind::Help);
  EXPECT_EQ(interactive_command("/quit").kind, Kind::Leave);
  EXPECT_EQ(interactive_command("/set").kind, Kind::Show);
  const InteractiveCommand set = interactive_command("/set  temperature\t0.8 ");
  EXPECT_EQ(set.kind, Kind::Set);
  EXPECT_EQ(set.name, "temperature");
  EXPECT_EQ(set.value, "0.8");
}

TEST(InteractiveCommand, Unknown) {
  for (const std::string line :
       {"/", "/sett", "/set temperature", "/set temperature 1 2", "/quit now"}) {
    EXPECT_EQ(interactive_command(line).kind, Kind::Unknown) << line;
    EXPECT_EQ(interactive_command(line).text, line);
  }
}

}  // namespace
}  // namespace bev::app
