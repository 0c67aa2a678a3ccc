// What each process of a world says about itself before NCCL starts, and what must hold among them.
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

std::string to_text(const NcclPeerInfo& claim);
// A Comm error where the text is none.
NcclPeerInfo claim_from(const std::string& text);

// Claims by rank. A Usage error where two ranks have one GPU or different versions of NCCL.
void check_claims(const std::vector<NcclPeerInfo>& claims);

}  // namespace bev::cuda
