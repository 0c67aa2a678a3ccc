// Tensors under the names of Megatron-LM, read through the import of its checkpoints.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "convert/megatron/megatron_weights.h"
#include "golden_runner/scratch_folder.h"

namespace bev::golden {

// The tensors of a file whose names begin with `prefix`, which is left out: "" or what ends with
// "language_model.".
struct ExportedTensors {
  ExportedTensors(const Json& shapes, const std::filesystem::path& tensors, bool has_fused_gelu,
                  const std::string& prefix = "");

  ScratchFolder folder;
  MegatronModel model;
  MegatronWeights weights;
};

}  // namespace bev::golden
