// Token files made for tests: by the writer, and byte by byte where they have to be wrong.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/token_file_writer.h"

namespace bev::test {

using Sequence = std::vector<int32_t>;

// Every document one sequence.
inline void write_tokens(const std::filesystem::path& prefix,
                         const std::vector<Sequence>& sequences, TokenType type = TokenType::u16) {
  TokenFileWriter writer(prefix, type);
  for (const Sequence& sequence : sequences) {
    writer.add_sequence(sequence);
    writer.end_document();
  }
  writer.commit();
}

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// An .idx file field by field.
struct RawIndex {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t type = 8;  // uint16
  std::vector<int32_t> lengths{3, 2};
  std::vector<int64_t> offsets{0, 6};
  std::vector<int64_t> documents{0, 1, 2};
  uint64_t sequences = 2, entries = 3;
  std::string modes{};

  std::string bytes() const {
    std::string out = magic;
    put(out, version);
    put(out, type);
    put(out, sequences);
    put(out, entries);
    for (const int32_t length : lengths) put(out, length);
    for (const int64_t offset : offsets) put(out, offset);
    for (const int64_t document : documents) put(out, document);
    return out + modes;
  }
};

inline std::vector<int32_t> read_all(const TokenFile& file, int64_t vocab = INT32_MAX) {
  std::vector<int32_t> ids(static_cast<size_t>(file.index().tokens()));
  file.read(0, ids, vocab);
  return ids;
}

}  // namespace bev::test
