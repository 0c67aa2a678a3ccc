// What the ranks of a job know and others on the network do not.
#pragma once

#include <string>

#include "launch/rank_environment.h"

namespace bev {

// At least 16 characters: those of BEVATRON_SECRET; else of the file that BEVATRON_SECRET_FILE
// names; else of ~/.bevatron/secret, which is made with random bytes where it is not there yet, so
// that machines with one home directory agree. A file that others than its owner can read or write
// is refused. Usage errors say which of the three is at fault and what would be legal.
std::string job_secret(const Getenv& getenv);

// 64 random hexadecimal digits: for a job whose processes all have the same parent.
std::string random_secret();

}  // namespace bev
