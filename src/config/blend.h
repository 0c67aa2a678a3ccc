// A list of token files with or without weights, as in Megatron-LM: "0.3 A 0.7 B", or "A B" for
// weights by size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/parse/describe.h"
#include "config/parse/load.h"

namespace bev {

struct Blend {
  std::vector<std::string> prefixes;
  std::vector<double> weights;  // as given, each above 0; empty: by size

  // A single file with a weight is still a blend: Megatron cuts its samples as those of one.
  bool is_one_file() const { return prefixes.size() == 1 && weights.empty(); }
};

// The blend, or why the list is none.
struct ParsedBlend {
  std::optional<Blend> blend;
  std::string why{};
};
// REQUIRES: the list is not empty.
ParsedBlend parse_blend(const TextList& list);

// The same of a list that the rules have accepted.
Blend blend_of(const TextList& list);

// Blends that stand in files of their own: --data-args-path and --per-split-data-args-path.

// Reads what data.args_path and data.split_args_path name into data.path, or into data.train_path,
// data.valid_path and data.test_path, and clears the two: the result, printed and read again, means
// the same. A file that cannot be read or is no such list is a problem.
void read_blend_files(LoadedConfig& loaded, Findings& findings);

}  // namespace bev
