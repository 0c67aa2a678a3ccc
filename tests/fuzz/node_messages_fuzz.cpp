// libFuzzer: any bytes as a message between launchers are refused with a Comm error or mean what
// encodes to the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "launch/node_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (bev::encode_node_message(bev::decode_node_message(bytes)) != bytes) std::abort();
  } catch (const bev::Error& error) {
    if (error.kind != bev::ErrorKind::Comm) std::abort();
  }
  return 0;
}
