// What each rank of a job must get from every exchange.
#pragma once

#include "comm/communicator.h"

namespace bev::test {

// All ranks of `world` together. Throws std::runtime_error that says what was wrong.
void check_exchanges(Communicator& world);

}  // namespace bev::test
