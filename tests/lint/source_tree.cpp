#include "lint/source_tree.h"

#include <algorithm>

namespace bev::lint {

namespace fs = std::filesystem;

bool is_cpp(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".h" || extension == ".cpp" || extension == ".cuh" || extension == ".cu";
}

std::string path_from(const fs::path& root, const fs::path& path) {
  return path.lexically_relative(root).generic_string();
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Report for_each_source(const fs::path& root, const Names& folders,
                       const std::function<void(const Source&)>& look) {
  Report report;
  for (const std::string_view folder : folders) {
    for (const fs::path& path : files_below(root / folder)) {
      if (!is_cpp(path)) continue;
      ++report.files;
      look({path_from(root, path), source_text(read_file(path)), report.findings});
    }
  }
  return report;
}

}  // namespace bev::lint
