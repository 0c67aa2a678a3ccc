// The part of bevatron inspect that is about checkpoints.
#pragma once

#include <filesystem>

namespace bev::app {

// Says what one checkpoint holds; of a folder of checkpoints or a run lists them first and takes
// the newest good one. With norms all data are read and checked.
void inspect_checkpoint(const std::filesystem::path& path, bool with_norms);

}  // namespace bev::app
