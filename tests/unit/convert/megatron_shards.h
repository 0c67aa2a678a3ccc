// A checkpoint of Megatron-LM as tools/megatron_export.py leaves it, made of a model of patterns.
// It is cut here by appending rows in the order in which Megatron-LM has them, without the
// arithmetic of the conversion.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "config/config.h"

namespace bev::test {

struct MegatronCase {
  Config config;
  int64_t tensor = 1, pipeline = 1, chunks = 1;
  double version = 3;
  enum class Names : uint8_t { Old, Legacy, Core } names = Names::Core;
  int64_t padded_vocab = 0;
};

// Writes the shards and megatron.json; returns what stands in that file.
Json write_megatron_shards(const std::filesystem::path& dir, const MegatronCase& about);

}  // namespace bev::test
