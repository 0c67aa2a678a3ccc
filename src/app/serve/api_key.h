// The key that clients of a server must show.
#pragma once

#include <string>

#include "app/cli/cli_flags.h"
#include "launch/rank_environment.h"

namespace bev::app {

// What --api-key-file names, else BEVATRON_API_KEY; empty: neither is given. At least 16 visible
// characters; a file that others than its owner can read is refused. Usage errors.
std::string api_key(const FlagValues& flags, const Getenv& getenv);

}  // namespace bev::app
