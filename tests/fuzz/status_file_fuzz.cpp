// libFuzzer: any text as a status is refused with a Data error, or its numbers are in range, its
// texts hold no control characters, and it comes back as it is when it is written and read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "report/status_file.h"

namespace {

bool is_harmless(const std::string& text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
  return text.size() <= 4096;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  bev::RunStatus status;
  try {
    status = bev::parse_status(text, "status.json");
  } catch (const bev::Error& e) {
    if (e.kind != bev::ErrorKind::Data) std::abort();
    return 0;
  }
  if (status.iteration < 0 || status.iterations < 0 || status.process.pid < 0 ||
      status.exit_code < 0 || !(status.updated >= 0) || !(status.started >= 0))
    std::abort();
  if (!is_harmless(status.host) || !is_harmless(status.ending) || !is_harmless(status.last_event))
    std::abort();
  if (!(bev::parse_status(bev::to_text(status), "again") == status)) std::abort();
  return 0;
}
