// libFuzzer: any bytes as a NumPy file are refused with a Data error, or the rows fill the file
// from the end of the header on.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "infer/embedding/embedding_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const bev::NpyHeader header =
        bev::parse_npy_header(std::as_bytes(std::span(data, size)), size, "fuzz.npy");
    if (header.rows < 1 || header.width < 1 || header.data_begin % sizeof(float) != 0) std::abort();
    const size_t values = static_cast<size_t>(header.rows) * static_cast<size_t>(header.width);
    if (values > size || header.data_begin + values * sizeof(float) != size) std::abort();
  } catch (const bev::Error& e) {
    if (e.kind != bev::ErrorKind::Data) std::abort();
  }
  return 0;
}
