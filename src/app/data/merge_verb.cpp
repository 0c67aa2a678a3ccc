// bevatron merge: several token files to one, as Megatron-LM's merge_datasets.py does it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "app/cli/cli_flags.h"
#include "app/cli/progress_line.h"
#include "app/cli/verbs.h"
#include "base/check.h"
#include "data/token_file_writer.h"

namespace fs = std::filesystem;

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 2> kMergeFlags{{
    {"--input", "DIR|PREFIX ...",
     "a folder: all its token files in the order of their names; or the files in this order"},
    {"--output-prefix", "PREFIX", "writes PREFIX.bin and PREFIX.idx"},
}};

// The prefixes of a folder whose two files are there. One of the two alone is somebody's mistake.
std::vector<fs::path> prefixes_in(const fs::path& folder) {
  std::vector<fs::path> prefixes;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path ending = entry.path().extension();
    if (ending != ".bin" && ending != ".idx") continue;
    const fs::path prefix = fs::path(entry.path()).replace_extension();
    const fs::path other = ending == ".bin" ? idx_path(prefix) : bin_path(prefix);
    BEV_CHECK(fs::exists(other), Data, "{} is there, but {} is not", entry.path().string(),
              other.string());
    if (ending == ".bin") prefixes.push_back(prefix);
  }
  BEV_CHECK(!prefixes.empty(), Data, "{}: there are no token files (.bin and .idx) in the folder",
            folder.string());
  std::sort(prefixes.begin(), prefixes.end(), [](const fs::path& a, const fs::path& b) {
    return a.filename().string() < b.filename().string();
  });
  return prefixes;
}

}  // namespace

int merge(std::span<const std::string> args) {
  const auto flags = flags_for({.name = "merge",
                                .summary = "Makes one token file of several: the documents of the "
                                           "first, then those of the second, and so on.",
                                .flags = kMergeFlags},
                               args);
  if (!flags) return 0;
  const std::vector<std::string> inputs = flags->texts("--input");
  const std::string prefix = flags->path("--output-prefix");
  BEV_CHECK(!inputs.empty() && !prefix.empty(), Usage, "{} is missing",
            inputs.empty() ? "--input" : "--output-prefix");
  const bool folder = inputs.size() == 1 && fs::is_directory(inputs.front());
  const std::vector<fs::path> prefixes =
      folder ? prefixes_in(inputs.front()) : std::vector<fs::path>(inputs.begin(), inputs.end());

  std::vector<TokenFile> files;
  int64_t tokens = 0;
  for (const fs::path& each : prefixes) {
    tokens += files.emplace_back(each).index().tokens();
    std::error_code ignored;
    BEV_CHECK(!fs::equivalent(bin_path(files.back().prefix()), bin_path(prefix), ignored), Usage,
              "--output-prefix {} is one of the inputs", prefix);
  }
  TokenFileWriter writer(prefix, files.front().index().type());
  ProgressLine progress("merging", tokens, "tokens");
  for (const TokenFile& file : files) {
    writer.add(file);
    progress.update(writer.tokens());
  }
  writer.commit();
  fmt::print("{}.bin, {}.idx: {} documents, {} tokens from {} files\n", prefix, prefix,
             with_commas(writer.documents()), with_commas(writer.tokens()), files.size());
  return 0;
}

}  // namespace bev::app
