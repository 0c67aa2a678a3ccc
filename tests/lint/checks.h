// Rules of the project that the compiler does not check. Each check reads the files below a root
// folder that is laid out like the repository.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev::lint {

struct Finding {
  std::string path;  // from the root
  int line;          // from 1; 0: the file as a whole
  std::string what;
};

struct Report {
  int files = 0;  // that were looked at; a check that saw none has checked nothing
  std::vector<Finding> findings;
};

struct Check {
  std::string_view name;
  std::string_view rule;  // one sentence, printed with the findings
  Report (*run)(const std::filesystem::path& root);
};

std::span<const Check> all_checks();

}  // namespace bev::lint
