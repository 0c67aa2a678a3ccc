// libFuzzer: any bytes as a config.json give a model that is within the bounds of the
// configuration, or a Data or Usage error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "convert/huggingface/huggingface_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const bev::Json json = bev::parse_json(text, "fuzz.json");
    const bev::ModelConfig m = bev::parse_huggingface_config(json, "fuzz.json").model;
    if (m.layers < 1 || m.width < 1 || m.heads < 1 || m.kv_heads < 1 || m.head_dim < 1 ||
        m.heads % m.kv_heads != 0 || m.vocab < 1 || m.positions < 1) {
      std::abort();
    }
  } catch (const bev::Error& e) {
    if (e.kind != bev::ErrorKind::Data && e.kind != bev::ErrorKind::Usage) std::abort();
  }
  return 0;
}
