// libFuzzer: any line is refused with a reason or understood; what another parser accepts as an
// object with a text under the key is understood, and as the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "data/preprocess/jsonl_reader.h"
#include "text/utf8.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> keys{"text", "b"};
  bev::JsonlReader reader(keys);
  const bool good = reader.read(line).empty();
  if (good)
    for (size_t key = 0; key < keys.size(); ++key)
      for (const std::string_view text : reader.texts(key))
        require(bev::valid_utf8_prefix(text) == text.size());

  const auto other = nlohmann::json::parse(line, nullptr, false);
  if (other.is_discarded() || !other.is_object()) return 0;
  // The other parser nests deeper and takes numbers of no length; only flat objects are compared.
  bool flat = true;
  for (const auto& [key, value] : other.items()) flat = flat && !value.is_structured();
  if (!flat || !other.contains("text") || !other.contains("b")) return 0;
  const bool texts = other["text"].is_string() && other["b"].is_string();
  require(good == texts);
  if (!texts) return 0;
  require(reader.texts(0).front() == other["text"].get_ref<const std::string&>());
  require(reader.texts(1).front() == other["b"].get_ref<const std::string&>());
  return 0;
}
