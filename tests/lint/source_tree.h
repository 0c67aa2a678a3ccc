// The files of a source tree as the lint checks visit them.
#pragma once

#include <functional>

#include "lint/checks.h"
#include "lint/source_text.h"

namespace bev::lint {

using Names = std::vector<std::string_view>;

bool is_cpp(const std::filesystem::path& path);

std::string path_from(const std::filesystem::path& root, const std::filesystem::path& path);

// The regular files below a folder, sorted. Empty if the folder does not exist.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder);

// One C++ file under inspection.
struct Source {
  std::string path;  // from the root
  SourceText text;
  std::vector<Finding>& findings;

  void report(int line, std::string what) const {
    findings.push_back({path, line, std::move(what)});
  }
};

// Calls `look` for every C++ file below the folders.
Report for_each_source(const std::filesystem::path& root, const Names& folders,
                       const std::function<void(const Source&)>& look);

}  // namespace bev::lint
