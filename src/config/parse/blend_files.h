// Blends that stand in files of their own: --data-args-path and --per-split-data-args-path.
#pragma once

#include "config/parse/load.h"

namespace bev {

// Reads what data.args_path and data.split_args_path name into data.path, or into data.train_path,
// data.valid_path and data.test_path, and clears the two: the result, printed and read again, means
// the same. A file that cannot be read or is no such list is a problem.
void read_blend_files(LoadedConfig& loaded, Findings& findings);

}  // namespace bev
