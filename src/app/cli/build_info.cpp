#include "app/cli/build_info.h"

#include <link.h>

#include <cstring>

#include "base/format.h"

namespace bev::app {

namespace {

std::string sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return ", address sanitizer";
#elif defined(__SANITIZE_THREAD__)
  return ", thread sanitizer";
#else
  return "";
#endif
}

// Reads the notes of the program itself, which is the first object.
int find_build_id(dl_phdr_info* info, size_t, void* out) {
  auto& id = *static_cast<std::string*>(out);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* note = reinterpret_cast<const unsigned char*>(info->dlpi_addr + segment.p_vaddr);
    const auto* end = note + segment.p_memsz;
    while (note + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) header;
      std::memcpy(&header, note, sizeof header);
      const auto padded = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
      const auto* content = note + sizeof header + padded(header.n_namesz);
      if (content + header.n_descsz > end) break;
      if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == sizeof "GNU") {
        for (size_t b = 0; b < header.n_descsz; ++b) id += format("{:02x}", content[b]);
        return 1;
      }
      note = content + padded(header.n_descsz);
    }
  }
  return 1;
}

}  // namespace

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(find_build_id, &id);
  return id;
}

std::string program_version() { return BEV_VERSION; }

std::string compiler() {
#if defined(__clang__)
  return format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string build_kind() {
#ifdef NDEBUG
  return "release" + sanitizer();
#else
  return "with assertions" + sanitizer();
#endif
}

}  // namespace bev::app
