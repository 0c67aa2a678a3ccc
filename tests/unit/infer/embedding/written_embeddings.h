// Files of embeddings, for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <span>

#include "infer/embedding/embedding_file.h"
#include "support/temporary_directory.h"

namespace bev::test {

inline void write_embeddings(const std::filesystem::path& path, int64_t rows, int64_t width,
                             std::span<const float> values) {
  std::ofstream file(path, std::ios::binary);
  file << npy_header(rows, width);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
}

}  // namespace bev::test
