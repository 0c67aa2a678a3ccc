#include "app/cli/man_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "app/cli/build_info.h"
#include "app/cli/dispatch.h"
#include "base/error.h"
#include "base/format.h"

namespace bev::app {
namespace {

constexpr std::array kPageVerbs{
    Verb{"train", "train a model", [](std::span<const std::string>) { return 0; }},
    Verb{"parts-too", "what it's \\ for", [](std::span<const std::string>) { return 0; },
         "list verify"},
    Verb{"dotted", ".TH is text here", [](std::span<const std::string>) { return 0; }},
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(ManPage, EscapesWhatRoffInterprets) {
  EXPECT_EQ(roff_text("plain text, 100 %"), "plain text, 100 %");
  EXPECT_EQ(roff_text("--dry-run"), "\\-\\-dry\\-run");
  EXPECT_EQ(roff_text("a\\b"), "a\\eb");
  EXPECT_EQ(roff_text("`x` \"y\" z's"), "\\(gax\\(ga \\(dqy\\(dq z\\(aqs");
  EXPECT_EQ(roff_text("~/.cache ^"), "\\(ti/.cache \\(ha");
  EXPECT_EQ(roff_text(".TH\n.SH\n'br\na.b"), "\\&.TH\n\\&.SH\n\\&\\(aqbr\na.b");
  EXPECT_EQ(roff_text(""), "");
}

TEST(ManPage, HasTheStandardSectionsInOrder) {
  const std::string page = man_page(kPageVerbs);
  EXPECT_EQ(page.find(".TH BEVATRON 1 "), 0u);
  EXPECT_NE(page.find(roff_text(program_version())), std::string::npos);
  size_t at = 0;
  for (const char* name : {"NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXIT STATUS",
                           "ENVIRONMENT", "FILES", "SEE ALSO"}) {
    const size_t found = page.find(format("\n.SH {}\n", name), at);
    ASSERT_NE(found, std::string::npos) << name;
    at = found;
  }
  // The line that apropos reads.
  EXPECT_NE(page.find("\n.SH NAME\nbevatron \\- train large language models\n"), std::string::npos);
}

TEST(ManPage, ListsEveryVerbAndExitCode) {
  const std::string page = man_page(kPageVerbs);
  EXPECT_NE(page.find(".TP\n\\fBtrain\\fR\ntrain a model\n"), std::string::npos);
  EXPECT_NE(page.find(".TP\n\\fBparts\\-too\\fR \\fIlist | verify\\fR\nwhat it\\(aqs \\e for\n"),
            std::string::npos);
  EXPECT_NE(page.find(".TP\n\\fBdotted\\fR\n\\&.TH is text here\n"), std::string::npos);
  for (const char* verb : {"completion", "help"})
    EXPECT_NE(page.find(format(".TP\n\\fB{}\\fR", verb)), std::string::npos) << verb;
  for (const ExitCode& each : exit_codes())
    EXPECT_NE(page.find(format(".TP\n\\fB{}\\fR\n{}\n", each.code, roff_text(each.meaning))),
              std::string::npos)
        << each.code;
}

TEST(ManPage, HasOnlyKnownRequestsAndNoUnescapedText) {
  for (const std::string& line : lines_of(man_page(kPageVerbs))) {
    ASSERT_FALSE(line.empty());
    if (line[0] == '.') {
      const std::string request = line.substr(0, line.find(' '));
      EXPECT_TRUE(request == ".TH" || request == ".SH" || request == ".TP" || request == ".PP" ||
                  request == ".br")
          << line;
    } else {
      EXPECT_EQ(line.find_first_of("'\"`~^"), std::string::npos) << line;
    }
    for (const unsigned char c : line) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << line;
  }
}

TEST(ManPage, IsAHelpTopic) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(dispatch(kPageVerbs, std::vector<std::string>{"help", "man"}), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), man_page(kPageVerbs));
}

// The codes of the help are those that errors end with.
TEST(ManPage, ExitCodesAreThoseOfErrors) {
  for (const ErrorKind kind : {ErrorKind::Usage, ErrorKind::Data, ErrorKind::Device,
                               ErrorKind::Comm, ErrorKind::Numerics, ErrorKind::Internal}) {
    const auto codes = exit_codes();
    EXPECT_TRUE(std::any_of(codes.begin(), codes.end(), [&](const ExitCode& each) {
      return each.code == exit_code(kind);
    })) << name_of(kind);
  }
}

}  // namespace
}  // namespace bev::app
