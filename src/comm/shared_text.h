// Few words from one rank to all, without tensors.
#pragma once

#include <string>

#include "comm/communicator.h"

namespace bev {

// What `root` brings, on every rank. All ranks together. Slow: for news, not for data.
std::string shared_text(Communicator& ranks, const std::string& here, int root);

}  // namespace bev
