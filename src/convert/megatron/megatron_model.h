// megatron.json: what tools/megatron_export.py says about a checkpoint of Megatron-LM, whose
// weights it puts into safetensors files beside it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/model_config.h"

namespace bev {

// How the rows of a fused matrix of queries, keys and values follow each other.
enum class QkvOrder : uint8_t {
  ThreeHeads,  // version 0: all q, all k, all v of a rank
  HeadsLast,   // version 1: of each row of a head, q, k and v
  Groups,      // from version 2: of each group, its q heads, k, v
};

struct MegatronShard {
  std::string file;
  int64_t tensor = 0, pipeline = 0;  // the rank
};

struct MegatronModel {
  ModelConfig model;  // vocab_multiple is 1
  QkvOrder order = QkvOrder::Groups;
  int64_t tensor = 1, pipeline = 1, chunks = 1;
  int64_t iteration = 0;
  std::vector<MegatronShard> shards;  // [pipeline][tensor]
};

// Data error when the file is not what it should be; Usage error naming a setting of Megatron-LM
// that this program has no counterpart for. GPT, BERT and T5 have the same settings: the tensors of
// the shards distinguish them.
MegatronModel read_megatron_model(const std::filesystem::path& dir);
// A GPT.
MegatronModel parse_megatron_model(const Json& json, std::string_view source);

}  // namespace bev
