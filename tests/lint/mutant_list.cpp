#include "lint/mutant_list.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "lint/source_text.h"

namespace bev::lint {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kList = "tests/mutants/list.txt";
constexpr std::string_view kScript = "tests/mutants/run.sh";
constexpr std::string_view kFilter = "--gtest_filter=";
constexpr std::string_view kGolden = "bevatron-golden";  // takes a folder

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::string with_newlines(std::string_view text) {
  std::string all(text);
  for (size_t at = 0; (at = all.find("\\n", at)) != std::string::npos; ++at)
    all.replace(at, 2, "\n");
  return all;
}

struct Fault {
  std::string file, text, replacement, program, argument;
};

// Nothing where the line has not the fields of a fault.
std::optional<Fault> fault_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('|', begin), line.size());
    fields.push_back(without_blanks(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (fields.size() != 6) return std::nullopt;
  return Fault{.file = std::string(fields[1]),
               .text = with_newlines(fields[2]),
               .replacement = with_newlines(fields[3]),
               .program = std::string(fields[4]),
               .argument = std::string(fields[5])};
}

int count_of(std::string_view text, std::string_view in) {
  if (text.empty()) return 0;
  int count = 0;
  for (size_t at = 0; (at = in.find(text, at)) != std::string_view::npos; at += text.size())
    ++count;
  return count;
}

// The programs that the script builds.
std::set<std::string> programs_of(const fs::path& root) {
  std::set<std::string> programs;
  std::istringstream lines(fs::exists(root / kScript) ? read_file(root / kScript) : "");
  const std::string_view begin = "targets=\"";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(begin)) continue;
    std::istringstream words(line.substr(begin.size(), line.rfind('"') - begin.size()));
    for (std::string word; words >> word;) programs.insert(word);
  }
  // The one whose file has another name than its target.
  if (programs.erase("bevatron_golden") > 0) programs.emplace(kGolden);
  return programs;
}

fs::path folder_of(std::string_view program) {
  if (program == "process_test") return "tests/processes";
  return fs::path("tests") / program.substr(0, program.rfind("_test"));
}

// Whether some string fits both patterns, in which '*' is any text.
bool can_meet(std::string_view a, std::string_view b) {
  if (a.empty() && b.empty()) return true;
  if (a.starts_with('*'))
    return can_meet(a.substr(1), b) || (!b.empty() && can_meet(a, b.substr(1)));
  if (b.starts_with('*')) return can_meet(b, a);
  return !a.empty() && !b.empty() && a[0] == b[0] && can_meet(a.substr(1), b.substr(1));
}

// The first two arguments of each call of the macro.
std::vector<std::array<std::string, 2>> calls_of(std::string_view macro, std::string_view text) {
  const std::string call = "\n" + std::string(macro) + "(";
  std::vector<std::array<std::string, 2>> found;
  for (size_t at = 0; (at = text.find(call, at)) != std::string_view::npos;) {
    at += call.size();
    std::array<std::string, 2> arguments;
    for (std::string& argument : arguments) {
      const size_t begin = std::min(text.find_first_not_of(" \n", at), text.size());
      const size_t end = std::min(text.find_first_of(" ,)\n", begin), text.size());
      argument = text.substr(begin, end - begin);
      at = end + 1;
    }
    found.push_back(std::move(arguments));
  }
  return found;
}

// The tests below a folder by the names that filters choose from; a '*' where a test has values.
std::vector<std::string> tests_below(const fs::path& folder) {
  std::vector<std::string> names;
  std::vector<std::array<std::string, 2>> of_values, values;
  if (!fs::is_directory(folder)) return names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = "\n" + read_file(entry.path());
    for (const char* macro : {"TEST", "TEST_F"})
      for (const auto& [suite, name] : calls_of(macro, text)) names.push_back(suite + "." + name);
    for (auto& call : calls_of("TEST_P", text)) of_values.push_back(std::move(call));
    for (auto& call : calls_of("INSTANTIATE_TEST_SUITE_P", text)) values.push_back(std::move(call));
  }
  for (const auto& [suite, name] : of_values)
    for (const auto& [prefix, of] : values)
      if (of == suite) names.push_back(prefix + "/" + suite + "." + name + "/*");
  return names;
}

// Every part of the filter must choose a test.
bool chooses_tests(std::string_view filter, const std::vector<std::string>& tests) {
  std::istringstream parts{std::string(filter)};
  bool all = !filter.empty();
  for (std::string part; std::getline(parts, part, ':');)
    all = all && std::any_of(tests.begin(), tests.end(),
                             [&](const std::string& test) { return can_meet(part, test); });
  return all;
}

class ListCheck {
 public:
  explicit ListCheck(const fs::path& root) : root_(root), programs_(programs_of(root)) {}

  // What is wrong with a fault; empty: nothing.
  std::string problem_of(const Fault& fault) {
    if (!fs::is_regular_file(root_ / fault.file)) return "there is no file " + fault.file;
    if (!texts_.contains(fault.file)) texts_[fault.file] = read_file(root_ / fault.file);
    const int count = count_of(fault.text, texts_[fault.file]);
    if (count != 1)
      return "its text is in " + fault.file + " " + std::to_string(count) + " times, not once";
    if (fault.text == fault.replacement) return "its replacement is its text";
    if (!programs_.contains(fault.program))
      return std::string(kScript) + " builds no " + fault.program;
    return problem_of_argument(fault);
  }
  int files() const { return static_cast<int>(texts_.size()); }

 private:
  std::string problem_of_argument(const Fault& fault) {
    if (fault.program == "ranks_test") return {};  // an engine and a number
    if (fault.program == kGolden)
      return fs::is_directory(root_ / fault.argument) ? "" : "there is no " + fault.argument;
    if (!fault.argument.starts_with(kFilter)) return "no " + std::string(kFilter);
    if (!tests_.contains(fault.program))
      tests_[fault.program] = tests_below(root_ / folder_of(fault.program));
    const bool chooses =
        chooses_tests(fault.argument.substr(kFilter.size()), tests_[fault.program]);
    return chooses ? "" : fault.program + " has no test for " + fault.argument;
  }

  const fs::path& root_;
  std::set<std::string> programs_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::vector<std::string>> tests_;
};

}  // namespace

Report check_mutant_list(const fs::path& root) {
  Report report;
  if (!fs::exists(root / kList)) return report;
  ListCheck check(root);
  std::istringstream lines(read_file(root / kList));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const std::optional<Fault> fault = fault_of(line);
    const std::string problem =
        fault ? check.problem_of(*fault) : "not six fields with '|' between them";
    if (!problem.empty()) report.findings.push_back({std::string(kList), number, problem});
  }
  report.files = 1 + check.files();
  return report;
}

}  // namespace bev::lint
