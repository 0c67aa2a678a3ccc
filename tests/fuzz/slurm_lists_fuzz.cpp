// libFuzzer: any list of Slurm's is refused as wrong usage or read within its limits; names that
// were read are read again as themselves.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "launch/slurm_lists.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto hosts = bev::slurm_hosts(text, "V");
    require(!hosts.empty() && hosts.size() <= 65536);
    const auto again = bev::slurm_hosts(hosts.back(), "V");
    require(again.size() == 1 && again.front() == hosts.back());
  } catch (const bev::Error& error) {
    require(error.kind == bev::ErrorKind::Usage);
  }
  try {
    require(bev::slurm_counts(text, "V").size() <= 65536);
  } catch (const bev::Error& error) {
    require(error.kind == bev::ErrorKind::Usage);
  }
  return 0;
}
