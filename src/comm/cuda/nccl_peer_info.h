// Each process of a world sends its NcclPeerInfo to the others before NCCL starts.
#pragma once

#include <string>
#include <vector>

namespace bev::cuda {

struct NcclPeerInfo {
  std::string world;    // a name for the world, of which the first rank's counts
  std::string version;  // of NCCL
  std::string machine;
  std::string gpu;  // its address on the bus
};

// This machine as NCCL tells machines apart: NCCL_HOSTID where it is set.
std::string machine_name();

std::string to_text(const NcclPeerInfo& info);
// A Comm error where the text is none.
NcclPeerInfo parse_peer_info(const std::string& text);

// By rank. A Usage error where two ranks have one GPU or different versions of NCCL.
void check_peer_infos(const std::vector<NcclPeerInfo>& infos);

}  // namespace bev::cuda
