// The tensors of a checkpoint, of whatever layout, as plain safetensors files of whole arrays.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"

namespace bev {

struct ExportOptions {
  bool with_optimizer = false;                // what the optimizer keeps too
  size_t file_bytes = size_t{5'000'000'000};  // of a folder: as many tensors as fit, at least one
};

struct Exported {
  size_t tensors = 0, bytes = 0;  // of data
  std::vector<std::string> files{};
};

// `to` with the ending .safetensors: one file. Else a folder of files
// tensors-00001-of-00002.safetensors with tensors.safetensors.index.json, which says where each is.
// Appears whole or not at all. Memory does not grow with the tensors. `progress` hears of the bytes
// written. Usage error: `to` lies in the checkpoint or is a folder with something in it.
Exported export_tensors(const CheckpointReader& checkpoint, const std::filesystem::path& to,
                        const ExportOptions& options,
                        const std::function<void(size_t bytes)>& progress = {});

}  // namespace bev
