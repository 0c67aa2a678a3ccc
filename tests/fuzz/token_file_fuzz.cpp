// libFuzzer: any bytes as an .idx file are refused with a Data error, or every sequence lies inside
// the .bin file, the documents cover all sequences and all tokens can be read. The first two bytes
// are the size of the .bin file.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "data/token_file.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_index(const bev::TokenIndex& index, size_t bin_bytes) {
  const auto width = static_cast<int64_t>(bev::size_of(index.type()));
  int64_t tokens = 0;
  for (int64_t i = 0; i < index.sequences(); ++i) {
    const int64_t begin = index.byte_offset(i), bytes = index.length(i) * width;
    require(begin >= 0 && bytes >= 0 && begin + bytes <= static_cast<int64_t>(bin_bytes));
    require(!index.is_contiguous() || begin == tokens * width);
    tokens += index.length(i);
  }
  require(tokens == index.tokens());
  require(index.document_begin(0) == 0);
  for (int64_t i = 0; i < index.documents(); ++i)
    require(index.document_begin(i) <= index.document_begin(i + 1));
  require(index.documents() == 0 || index.document_begin(index.documents()) == index.sequences());
}

void write(const std::filesystem::path& path, const uint8_t* data, size_t size) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  require(file != nullptr && std::fwrite(data, 1, size, file) == size);
  std::fclose(file);
}

// The .bin file repeats the bytes of the index.
void check_file(const uint8_t* data, size_t size, size_t bin_bytes) {
  static const std::filesystem::path prefix =
      std::filesystem::temp_directory_path() / ("bevatron-fuzz-" + std::to_string(::getpid()));
  std::string bin;
  while (bin.size() < bin_bytes)
    bin.append(reinterpret_cast<const char*>(data), std::min(size, bin_bytes - bin.size()));
  write(bev::idx_path(prefix), data, size);
  write(bev::bin_path(prefix), reinterpret_cast<const uint8_t*>(bin.data()), bin.size());
  try {
    const bev::TokenFile file(prefix);
    (void)file.largest_id();
  } catch (const bev::Error& e) {
    require(e.kind == bev::ErrorKind::Data);
  }
  std::filesystem::remove(bev::idx_path(prefix));
  std::filesystem::remove(bev::bin_path(prefix));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t bin_bytes = data[0] + size_t{256} * data[1];
  data += 2;
  size -= 2;
  try {
    const bev::TokenIndex index(std::as_bytes(std::span(data, size)), bin_bytes, "fuzz.idx");
    check_index(index, bin_bytes);
    // Sequences may share tokens: a small file may hold very many.
    if (index.tokens() <= 1 << 16) check_file(data, size, bin_bytes);
  } catch (const bev::Error& e) {
    require(e.kind == bev::ErrorKind::Data);
  }
  return 0;
}
