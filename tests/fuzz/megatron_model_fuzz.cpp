// libFuzzer: any bytes as a megatron.json give a model that is within the bounds of the
// configuration and one shard per rank, or a Data or Usage error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "convert/megatron/megatron_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const bev::Json json = bev::parse_json(text, "fuzz.json");
    const bev::MegatronModel m = bev::parse_megatron_model(json, "fuzz.json");
    if (m.model.layers < 1 || m.model.width < 1 || m.model.heads < 1 || m.model.kv_heads < 1 ||
        m.model.head_dim < 1 || m.model.heads % m.model.kv_heads != 0 || m.model.vocab < 1 ||
        m.model.kv_heads % m.tensor != 0 || m.chunks < 1) {
      std::abort();
    }
    if (m.shards.size() != static_cast<size_t>(m.tensor * m.pipeline)) std::abort();
    for (const bev::MegatronShard& shard : m.shards) {
      if (shard.file.empty() || shard.file.find('/') != std::string::npos) std::abort();
    }
  } catch (const bev::Error& e) {
    if (e.kind != bev::ErrorKind::Data && e.kind != bev::ErrorKind::Usage) std::abort();
  }
  return 0;
}
