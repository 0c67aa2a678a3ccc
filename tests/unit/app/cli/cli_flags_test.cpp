#include "app/cli/cli_flags.h"

#include <gtest/gtest.h>

#include <array>

#include "support/expect_error.h"

namespace bev::app {
namespace {

using test::expect_error;
using Args = std::vector<std::string>;

constexpr std::array<VerbFlag, 7> kFlags{{
    {"--output", "FILE", "where it goes"},
    {"--bytes", "SIZE", "how much"},
    {"--count", "N", "how often"},
    {"--json", "", "for machines"},
    {"--input", "FILE ...", "what is read"},
    {"--format", "NAME", "lines or paragraphs"},
    {"--watch", "[SECONDS]", "look again"},
}};

constexpr VerbSpec kVerb{.name = "demo", .summary = "Shows flags.", .flags = kFlags};

VerbSpec with_positional(size_t min, size_t max) {
  VerbSpec verb = kVerb;
  verb.positional = "DIR ...";
  verb.min_positional = min;
  verb.max_positional = max;
  return verb;
}

FlagValues read(const Args& args) { return {kVerb, args}; }

void refused(const Args& args, const std::string& text) {
  expect_error(ErrorKind::Usage, text, [&] { read(args); });
}

TEST(OwnFlags, ReadsValuesInBothNotations) {
  const FlagValues values = read({"--output", "a b", "--count=3", "--json", "--bytes", "2M"});
  EXPECT_EQ(values.text("--output"), "a b");
  EXPECT_EQ(values.path("--output"), "a b");
  EXPECT_EQ(values.integer("--count", 1, 0, 9), 3);
  EXPECT_EQ(values.size("--bytes", 1, 0, 1 << 30), 2'000'000);
  EXPECT_TRUE(values.has("--json"));
  EXPECT_FALSE(values.has("--input"));
  EXPECT_TRUE(values.positional().empty());
}

TEST(OwnFlags, SomeMayStandAlone) {
  EXPECT_EQ(read({"--watch"}).real("--watch", 2, 0, 9), 2);
  EXPECT_EQ(read({"--watch", "5"}).real("--watch", 2, 0, 9), 5);
  EXPECT_EQ(read({"--watch=0.5"}).real("--watch", 2, 0, 9), 0.5);
  EXPECT_TRUE(read({"--watch", "--json"}).has("--json"));
  const Args run{"--watch", "run"};
  const FlagValues values(with_positional(1, 1), run);
  EXPECT_TRUE(values.has("--watch"));
  EXPECT_EQ(values.positional(), Args{"run"});
}

TEST(OwnFlags, DefaultsAreTheCallersAndAreNotChecked) {
  const FlagValues values = read({});
  EXPECT_EQ(values.text("--output", "here"), "here");
  EXPECT_EQ(values.path("--output"), "");
  EXPECT_EQ(values.integer("--count", -1, 0, 9), -1);
  EXPECT_EQ(values.size("--bytes", -1, 0, 9), -1);
  EXPECT_EQ(values.real("--count", 0.5, 1, 2), 0.5);
  EXPECT_TRUE(values.texts("--input").empty());
}

TEST(OwnFlags, TheLastOfRepeatedFlagsWinsAndListsGrow) {
  const FlagValues values =
      read({"--count", "1", "--input", "a", "b", "--count", "2", "--input=c"});
  EXPECT_EQ(values.integer("--count", 0, 0, 9), 2);
  EXPECT_EQ(values.texts("--input"), (Args{"a", "b", "c"}));
}

TEST(OwnFlags, DashesThatAreNoFlags) {
  const FlagValues values = read({"--output", "-", "--count", "-5"});
  EXPECT_EQ(values.text("--output"), "-");
  EXPECT_EQ(values.integer("--count", 0, -9, 9), -5);
  EXPECT_EQ(read({"--output=--odd"}).text("--output"), "--odd");
  const FlagValues rest(with_positional(0, 9), Args{"-", "--json", "--", "--output", "x"});
  EXPECT_EQ(rest.positional(), (Args{"-", "--output", "x"}));
  EXPECT_FALSE(rest.has("--output"));
}

TEST(OwnFlags, PositionalArgumentsAreCounted) {
  EXPECT_EQ(FlagValues(with_positional(1, 2), Args{"a", "--json", "b"}).positional(),
            (Args{"a", "b"}));
  expect_error(ErrorKind::Usage, "missing", [] { FlagValues(with_positional(1, 2), Args{}); });
  expect_error(ErrorKind::Usage, "\"c\"",
               [] { FlagValues(with_positional(1, 2), Args{"a", "b", "c"}); });
  refused({"stray"}, "\"stray\"");
}

TEST(OwnFlags, AnUnknownFlagNamesTheNearest) {
  refused({"--outptu", "x"}, "did you mean --output?");
  refused({"--out", "x"}, "did you mean --output?");
  refused({"-o", "x"}, "did you mean --output?");
  refused({"--xyzzy"}, "--help lists all flags");
  refused({"--hepl"}, "did you mean --help?");
  refused({"--\n\x01"}, "\\n");
}

TEST(OwnFlags, AllProblemsAreOneReport) {
  const std::string message = expect_error(ErrorKind::Usage, "3 problems in the arguments", [] {
    read({"--outptu", "x", "--json=yes", "--count"});
  });
  EXPECT_NE(message.find("--json takes no value"), std::string::npos) << message;
  EXPECT_NE(message.find("--count has no value"), std::string::npos) << message;
}

TEST(OwnFlags, AValueIsWanted) {
  refused({"--output"}, "it is the last argument");
  refused({"--output", "--json"}, "\"--json\" follows at once");
  refused({"--output", "--", "x"}, "has no value");
  refused({"--input"}, "--input FILE ...");
  EXPECT_EQ(read({"--output="}).text("--output", "x"), "");
  expect_error(ErrorKind::Usage, "it is empty", [] { read({"--output="}).path("--output"); });
  expect_error(ErrorKind::Usage, "UTF-8", [] { read({"--output", "\xFF"}).path("--output"); });
}

TEST(OwnFlags, TypedValuesSayWhatIsLegal) {
  const auto integer = [](const char* text) {
    return read({"--count", text}).integer("--count", 0, 1, 10);
  };
  EXPECT_EQ(integer("1_0"), 10);
  for (const char* wrong : {"0", "11", "many", "", "1.5", "99999999999999999999"}) {
    const std::string message =
        expect_error(ErrorKind::Usage, "an integer from 1 to 10", [&] { integer(wrong); });
    EXPECT_NE(message.find("--count"), std::string::npos);
  }
  const auto real = [](const char* text) {
    return read({"--count", text}).real("--count", 0, 0, 1);
  };
  EXPECT_EQ(real("0.25"), 0.25);
  for (const char* wrong : {"nan", "inf", "2", "-0.1", "x"})
    expect_error(ErrorKind::Usage, "a number from 0 to 1", [&] { real(wrong); });
  expect_error(ErrorKind::Usage, "Ki", [] { read({"--bytes", "2X"}).size("--bytes", 0, 0, 100); });
  expect_error(ErrorKind::Usage, "too large",
               [] { read({"--bytes", "2K"}).size("--bytes", 0, 0, 100); });
}

TEST(OwnFlags, Choices) {
  constexpr std::array<std::string_view, 2> kNames{"lines", "paragraphs"};
  const auto choice = [&](const Args& args) { return read(args).choice("--format", 1, kNames); };
  EXPECT_EQ(choice({}), 1u);
  EXPECT_EQ(choice({"--format", "lines"}), 0u);
  expect_error(ErrorKind::Usage, "did you mean lines?", [&] { choice({"--format", "line"}); });
  expect_error(ErrorKind::Usage, "one of lines, paragraphs", [&] { choice({"--format", "xml"}); });
}

TEST(OwnFlags, RelationsBetweenFlags) {
  const FlagValues both = read({"--count", "1", "--bytes", "1"});
  expect_error(ErrorKind::Usage, "exclude", [&] { both.require_not_both("--count", "--bytes"); });
  expect_error(ErrorKind::Usage, "needs --output",
               [&] { both.require_with("--count", "--output"); });
  both.require_not_both("--count", "--json");
  both.require_with("--count", "--bytes");
  both.require_with("--json", "--output");
}

TEST(OwnFlags, AskingForWhatIsNotDeclaredIsABug) {
  const FlagValues values = read({});
  expect_error(ErrorKind::Internal, "--colour", [&] { values.has("--colour"); });
  expect_error(ErrorKind::Internal, "--json", [&] { values.text("--json"); });
  expect_error(ErrorKind::Internal, "--output", [&] { values.texts("--output"); });
}

TEST(OwnFlags, HelpListsEveryFlag) {
  const std::string help = help_text(with_positional(0, 1), 80);
  EXPECT_EQ(help.rfind("usage: bevatron demo", 0), 0u) << help;
  EXPECT_NE(help.find("DIR ..."), std::string::npos);
  EXPECT_NE(help.find("Shows flags."), std::string::npos);
  EXPECT_NE(help.find("--help"), std::string::npos);
  for (const VerbFlag& flag : kFlags) {
    EXPECT_NE(help.find(flag.name), std::string::npos);
    EXPECT_NE(help.find(flag.help), std::string::npos);
  }
  testing::internal::CaptureStdout();
  EXPECT_FALSE(flags_for(kVerb, Args{"--nonsense", "-h"}).has_value());
  EXPECT_EQ(testing::internal::GetCapturedStdout().rfind("usage:", 0), 0u);
}

}  // namespace
}  // namespace bev::app
