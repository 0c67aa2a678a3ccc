#include "lint/mutant_list.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <variant>

#include "lint/definitions.h"
#include "lint/source_text.h"
#include "lint/source_tree.h"

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

struct Fault {
  std::string name, function, statement, replacement, program, argument;
};

// Nothing if the line does not have the fields of a fault.
std::optional<Fault> fault_of(std::string_view line) {
  std::vector<std::string> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('|', begin), line.size());
    fields.emplace_back(without_blanks(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (fields.size() != 6) return std::nullopt;
  return Fault{.name = fields[0],
               .function = fields[1],
               .statement = fields[2],
               .replacement = fields[3],
               .program = fields[4],
               .argument = fields[5]};
}

// The lines of the list that are neither empty nor comments: number, text.
std::vector<std::pair<int, std::string>> lines_of_list(const fs::path& root) {
  std::vector<std::pair<int, std::string>> found;
  std::istringstream lines(fs::exists(root / kList) ? read_file(root / kList) : "");
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && !line.starts_with('#')) found.emplace_back(number, line);
  }
  return found;
}

// A text in which white space counts only between two words and in literals.
struct NormalizedText {
  std::string text;
  std::vector<size_t> origin;  // the offset of each character before the normalisation
};

NormalizedText normalized(std::string_view text) {
  NormalizedText result;
  bool is_apart = false;
  for (size_t at = 0; at < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      is_apart = true;
      ++at;
      continue;
    }
    const bool after_word = !result.text.empty() && is_word_char(result.text.back());
    if (is_apart && after_word && is_word_char(text[at])) {
      result.text += ' ';
      result.origin.push_back(at);
    }
    const size_t end = opens_literal(text, at) ? after_literal(text, at) : at + 1;
    is_apart = false;
    for (; at < end; ++at) {
      result.text += text[at];
      result.origin.push_back(at);
    }
  }
  return result;
}

// Where a statement is: bytes of a file.
struct Site {
  std::string path;  // from the root
  size_t begin, end;
};

// The functions, classes and file-scope names of src/.
class SourceIndex {
 public:
  explicit SourceIndex(const fs::path& root) {
    for (const fs::path& path : files_below(root / "src")) {
      if (!is_cpp(path)) continue;
      const size_t file = files_.size();
      files_.push_back({.path = path_from(root, path), .text = blank_comments(read_file(path))});
      for (Definition& definition : definitions(files_.back().text)) {
        const std::string last = last_part(definition.name);
        by_last_name_[last].push_back({file, std::move(definition)});
      }
    }
  }

  int files() const { return static_cast<int>(files_.size()); }

  // The place of the statement, or what is wrong with it.
  std::variant<Site, std::string> find(const std::string& function,
                                       const std::string& statement) const {
    std::set<std::string> names;
    const std::vector<const Entry*> entries = entries_of(function, names);
    if (entries.empty()) return "src/ does not define " + function;
    if (names.size() > 1) return function + " is ambiguous: " + joined(names);
    const std::string pattern = normalized(statement).text;
    if (pattern.empty()) return "the statement is empty";
    std::vector<Site> sites;
    for (const Entry* entry : entries) {
      const File& file = files_[entry->file];
      const size_t begin = entry->definition.begin;
      const NormalizedText body =
          normalized(std::string_view(file.text).substr(begin, entry->definition.end - begin));
      for (size_t at = 0; (at = body.text.find(pattern, at)) != std::string::npos; ++at)
        sites.push_back(
            {file.path, begin + body.origin[at], begin + body.origin[at + pattern.size() - 1] + 1});
    }
    if (sites.size() == 1) return sites[0];
    return "the statement is " + std::to_string(sites.size()) + " times in " + *names.begin() +
           ", not once" + (sites.empty() ? ": " + statement : "");
  }

 private:
  struct File {
    std::string path, text;
  };
  struct Entry {
    size_t file;
    Definition definition;
  };

  // Overloads have one name; definitions with different names make the name ambiguous.
  std::vector<const Entry*> entries_of(const std::string& function,
                                       std::set<std::string>& names) const {
    std::vector<const Entry*> entries;
    const auto found = by_last_name_.find(last_part(function));
    if (found == by_last_name_.end()) return entries;
    for (const Entry& entry : found->second) {
      if (!denotes(function, entry.definition.name)) continue;
      entries.push_back(&entry);
      names.insert(entry.definition.name);
    }
    return entries;
  }

  static std::string joined(const std::set<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
  }

  std::vector<File> files_;
  std::map<std::string, std::vector<Entry>> by_last_name_;
};

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
  explicit ListCheck(const fs::path& root)
      : root_(root), sources_(root), programs_(programs_of(root)) {}

  // What is wrong with a fault; empty: nothing.
  std::string problem_of(const Fault& fault) {
    if (!names_.insert(fault.name).second) return "another fault has this name";
    const std::variant<Site, std::string> site = sources_.find(fault.function, fault.statement);
    if (const std::string* problem = std::get_if<std::string>(&site)) return *problem;
    if (normalized(fault.statement).text == normalized(fault.replacement).text)
      return "the replacement is the statement";
    if (!programs_.contains(fault.program))
      return std::string(kScript) + " does not build " + fault.program;
    return problem_of_argument(fault);
  }
  int files() const { return sources_.files(); }

 private:
  std::string problem_of_argument(const Fault& fault) {
    if (fault.program == "ranks_test") return {};  // an engine and a number
    if (fault.program == kGolden)
      return fs::is_directory(root_ / fault.argument) ? "" : "no such folder: " + fault.argument;
    if (!fault.argument.starts_with(kFilter)) return "no " + std::string(kFilter);
    if (!tests_.contains(fault.program))
      tests_[fault.program] = tests_below(root_ / folder_of(fault.program));
    const bool chooses =
        chooses_tests(fault.argument.substr(kFilter.size()), tests_[fault.program]);
    return chooses ? "" : fault.program + " has no test for " + fault.argument;
  }

  const fs::path& root_;
  SourceIndex sources_;
  std::set<std::string> names_;  // of the faults before this one
  std::set<std::string> programs_;
  std::map<std::string, std::vector<std::string>> tests_;
};

}  // namespace

Report check_mutant_list(const fs::path& root) {
  Report report;
  if (!fs::exists(root / kList)) return report;
  ListCheck check(root);
  for (const auto& [number, line] : lines_of_list(root)) {
    const std::optional<Fault> fault = fault_of(line);
    const std::string problem = fault ? check.problem_of(*fault) : "expected six fields between |";
    if (problem.empty()) continue;
    report.findings.push_back(
        {std::string(kList), number, fault ? fault->name + ": " + problem : problem});
  }
  report.files = 1 + check.files();
  return report;
}

std::string plant_fault(const fs::path& root, std::string_view name) {
  for (const auto& [number, line] : lines_of_list(root)) {
    const std::optional<Fault> fault = fault_of(line);
    if (!fault || fault->name != name) continue;
    const std::variant<Site, std::string> found =
        SourceIndex(root).find(fault->function, fault->statement);
    if (const std::string* problem = std::get_if<std::string>(&found))
      throw std::runtime_error(fault->name + ": " + *problem);
    const Site& site = std::get<Site>(found);
    std::string text = read_file(root / site.path);
    text.replace(site.begin, site.end - site.begin, fault->replacement);
    std::ofstream out(root / site.path, std::ios::binary | std::ios::trunc);
    if (!(out << text) || !out.flush())
      throw std::runtime_error("cannot write " + (root / site.path).string());
    return site.path;
  }
  throw std::runtime_error("no such fault in " + std::string(kList) + ": " + std::string(name));
}

}  // namespace bev::lint
