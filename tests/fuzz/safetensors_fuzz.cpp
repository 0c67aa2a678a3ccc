// libFuzzer: any bytes as a safetensors file are refused with a Data error, or every tensor lies
// inside them, all are disjoint and together they fill the data.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = std::as_bytes(std::span(data, size));
    const bev::SafetensorsHeader header = bev::parse_safetensors_header(file, "fuzz.safetensors");
    size_t covered = 0;
    for (const bev::StoredTensor& tensor : header.tensors) {
      if (tensor.begin > size || tensor.bytes > size - tensor.begin) std::abort();
      if (tensor.dtype &&
          static_cast<size_t>(tensor.shape.elements()) * bev::size_of(*tensor.dtype) !=
              tensor.bytes) {
        std::abort();
      }
      covered += tensor.bytes;
    }
    if (covered > size) std::abort();
  } catch (const bev::Error& e) {
    if (e.kind != bev::ErrorKind::Data) std::abort();
  }
  return 0;
}
