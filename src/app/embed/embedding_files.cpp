#include "app/embed/embedding_files.h"

#include <cstring>

#include "base/format.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace bev::app {

std::string embedding_line(std::string_view text, int64_t tokens, int64_t cut,
                           std::span<const float> embedding) {
  Json json{{"text", text}, {"tokens", tokens}};
  if (cut > 0) json["cut"] = cut;
  // A text can hold any bytes; what is not UTF-8 is replaced.
  std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  line.pop_back();
  // As short as a float32 allows, which is less than half of what Json writes for it.
  return line + format(",\"embedding\":[{}]}}\n", fmt::join(embedding, ","));
}

void write_embedding_tensor(const std::filesystem::path& path,
                            const std::vector<std::vector<float>>& vectors) {
  const auto width = static_cast<int64_t>(vectors.front().size());
  write_safetensors(path, {{"embeddings", DType::f32, {std::ssize(vectors), width}}},
                    [&](const TensorToWrite&, std::span<std::byte> to) {
                      for (const std::vector<float>& vector : vectors) {
                        const auto bytes = std::as_bytes(std::span(vector));
                        std::memcpy(to.data(), bytes.data(), bytes.size());
                        to = to.subspan(bytes.size());
                      }
                    });
}

}  // namespace bev::app
