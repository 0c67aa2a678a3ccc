// Runs the plain-text scenarios of tests/cli/scenarios as a user would: a shell in an empty
// directory.
//
//   # what is shown
//   $ bevatron plan --no-such-flag     the command; $ repeats for more commands, the last one
//   counts exit 2 > text that must appear in the output (stdout and stderr together) ! text that
//   must not appear
//
// Blank lines separate scenarios. $CONFIGS is the folder of the recipes, $CHECKPOINTS that of two
// small runs with checkpoints, which were written by the first version of the format.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace bev::test {
namespace {

struct Scenario {
  std::string file, title;
  std::vector<std::string> commands, expected, forbidden;
  int exit = 0;
};

std::vector<Scenario> read_scenarios() {
  std::vector<Scenario> scenarios;
  for (const auto& entry : std::filesystem::directory_iterator(BEV_SCENARIOS)) {
    if (entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path());
    Scenario current;
    const auto finish = [&] {
      if (!current.commands.empty()) scenarios.push_back(current);
      current = {};
    };
    for (std::string line; std::getline(file, line);) {
      const std::string rest = line.size() > 2 ? line.substr(2) : "";
      current.file = entry.path().stem().string();
      if (line.empty()) {
        finish();
      } else if (line[0] == '#') {
        current.title += rest;
      } else if (line[0] == '$') {
        current.commands.push_back(rest);
      } else if (line[0] == '>') {
        current.expected.push_back(rest);
      } else if (line[0] == '!') {
        current.forbidden.push_back(rest);
      } else if (line.rfind("exit ", 0) == 0) {
        current.exit = std::stoi(line.substr(5));
      } else {
        ADD_FAILURE() << entry.path() << ": cannot read the line: " << line;
      }
    }
    finish();
  }
  return scenarios;
}

// The error catalogue: every scenario that ends with an error, with what the program printed.
class Catalogue {
 public:
  // Written when the environment names a file (`make docs`).
  Catalogue() : path_(std::getenv("BEVATRON_ERROR_CATALOGUE")) {}

  // `folder`: where it ran; its name says nothing to a reader.
  void add(const Scenario& scenario, std::string output, const std::string& folder) {
    if (path_ == nullptr || scenario.exit == 0) return;
    for (size_t at = 0; (at = output.find(folder, at)) != std::string::npos;)
      output.replace(at, folder.size(), "/home/user");
    // Nor do the numbers of processes.
    output = std::regex_replace(output, std::regex("\\(process [0-9]+\\)"), "(process 4711)");
    std::string& section = sections_[scenario.file];
    section += "\n### " + scenario.title + "\n\n";
    for (const std::string& command : scenario.commands) section += "    $ " + command + "\n";
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);)
      section += line.empty() ? "\n" : "    " + line + "\n";
  }

  void write() const {
    if (path_ == nullptr) return;
    std::ofstream file(path_);
    file << "# Errors, as they are printed\n\n"
            "Every message says what is wrong, where, why, and what would be legal; all problems "
            "of a "
            "configuration come at\nonce. The last line gives the kind and the exit code: 2 usage "
            "or "
            "configuration, 3 data (a file is missing, damaged or\ncannot be written), 4 device or "
            "memory, 5 communication, 6 numbers that are not finite or differ, 70 a bug of "
            "bevatron. `bevatron diff`\nends with 1, and no error, where what it compared "
            "differs.\n\n"
            "This page is made by `make docs` from the scenarios in tests/cli/scenarios, which "
            "`make test` runs.\n";
    for (const auto& [name, section] : sections_) file << "\n## " << name << "\n" << section;
  }

 private:
  const char* path_;
  std::map<std::string, std::string> sections_;
};

std::string quoted(const std::string& text) { return "'" + text + "'"; }

TEST(Scenarios, BehaveAsWritten) {
  const std::vector<Scenario> scenarios = read_scenarios();
  ASSERT_GT(scenarios.size(), 10u);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("bevatron-cli-" + std::to_string(::getpid()));
  Catalogue catalogue;
  for (const Scenario& scenario : scenarios) {
    SCOPED_TRACE(scenario.file + ": " + scenario.title);
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::string script =
        "cd " + quoted(folder.string()) +
        " && PATH=" + quoted(std::filesystem::path(BEV_PROGRAM).parent_path().string()) +
        ":$PATH CONFIGS=" + quoted(BEV_CONFIGS) + " CHECKPOINTS=" + quoted(BEV_CHECKPOINTS) +
        " && export PATH CONFIGS CHECKPOINTS";
    for (const std::string& command : scenario.commands) script += "\n" + command;
    std::FILE* pipe = ::popen(("{ " + script + "\n} 2>&1").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string output;
    std::array<char, 4096> chunk{};
    for (size_t got = 0; (got = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) {
      output.append(chunk.data(), got);
    }
    const int status = ::pclose(pipe);
    catalogue.add(scenario, output, folder.string());
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), scenario.exit) << output;
    for (const std::string& text : scenario.expected) {
      EXPECT_NE(output.find(text), std::string::npos) << "missing: " << text << "\n" << output;
    }
    for (const std::string& text : scenario.forbidden) {
      EXPECT_EQ(output.find(text), std::string::npos) << "found: " << text << "\n" << output;
    }
  }
  catalogue.write();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace bev::test
