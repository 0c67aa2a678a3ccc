#include "app/embed/embedding_files.h"

#include <cstring>

#include "base/file.h"
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

void write_npy(const std::filesystem::path& path, const std::vector<std::vector<float>>& vectors) {
  // Version 1.0 of the format: magic, length of the header, a Python dictionary padded with blanks
  // so that the data begins at a multiple of 64 bytes.
  constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
  std::string header = format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
                              vectors.size(), vectors.front().size());
  const size_t before = kMagic.size() + 2;
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  AtomicFile file(path);
  file.write(kMagic);
  file.write(
      std::string{static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)});
  file.write(header);
  for (const std::vector<float>& vector : vectors)
    file.write(std::string_view(reinterpret_cast<const char*>(vector.data()),
                                vector.size() * sizeof(float)));
  file.commit();
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
