// libFuzzer: any text as a manifest is refused with a Data error, or its numbers are in range, its
// files are plain names, and it comes back as it is when it is written and read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  bev::Manifest manifest;
  try {
    manifest =
        bev::parse_manifest(bev::parse_json(text, "manifest.json", {.depth = 8}), "manifest.json");
  } catch (const bev::Error& e) {
    if (e.kind != bev::ErrorKind::Data) std::abort();
    return 0;
  }
  if (manifest.iteration < 0 || manifest.consumed_samples < 0 || manifest.scheduled_samples < 0 ||
      manifest.data_position < 0 || manifest.parameters < 0 || manifest.time < 0)
    std::abort();
  for (const bev::SampleRange& range : manifest.skipped)
    if (range.begin < 0 || range.begin > range.end) std::abort();
  for (const bev::CheckpointFile& file : manifest.files)
    if (file.name.empty() || file.name == ".." || file.name.find('/') != std::string::npos)
      std::abort();
  const std::string written = bev::to_json(manifest).dump(1);
  if (!(bev::parse_manifest(bev::parse_json(written, "again"), "again") == manifest)) std::abort();
  return 0;
}
