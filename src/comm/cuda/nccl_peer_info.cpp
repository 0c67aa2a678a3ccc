#include "comm/cuda/nccl_peer_info.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/system_file.h"
#include "net/address.h"

namespace bev::cuda {

std::string machine_name() {
  if (const char* name = std::getenv("NCCL_HOSTID"); name != nullptr && *name != '\0')
    return format("NCCL_HOSTID {}", name);
  // Machines of two networks may have the same name.
  return format("{} {}", host_name(), system_line("/proc/sys/kernel/random/boot_id"));
}

std::string to_text(const NcclPeerInfo& info) {
  return format("{}\n{}\n{}\n{}\n", info.world, info.version, info.machine, info.gpu);
}

NcclPeerInfo parse_peer_info(const std::string& text) {
  std::istringstream lines(text);
  NcclPeerInfo info;
  for (std::string* field : {&info.world, &info.version, &info.machine, &info.gpu}) {
    BEV_CHECK(std::getline(lines, *field) && !field->empty(), Comm,
              "a rank says about its GPU, which is not what this program says: '{}'",
              text.substr(0, 200));
  }
  return info;
}

void check_peer_infos(const std::vector<NcclPeerInfo>& infos) {
  std::map<std::pair<std::string, std::string>, size_t> owners;
  for (size_t rank = 0; rank < infos.size(); ++rank) {
    const NcclPeerInfo& info = infos[rank];
    BEV_CHECK(info.version == infos.front().version, Usage,
              "rank 0 has NCCL {} and rank {} has {}: all ranks need the same",
              infos.front().version, rank, info.version);
    const auto [owner, is_new] = owners.try_emplace({info.machine, info.gpu}, rank);
    BEV_CHECK(is_new, Usage,
              "ranks {} and {} are on the same GPU, {} of {}, and NCCL allows one rank per GPU: "
              "start as many processes on a machine as it has GPUs, each with one of its own "
              "(local rank, CUDA_VISIBLE_DEVICES). Only tests want to share one: each process "
              "then has its own NCCL_HOSTID",
              owner->second, rank, info.gpu, info.machine);
  }
}

}  // namespace bev::cuda
