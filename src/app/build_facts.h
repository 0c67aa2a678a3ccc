// What this program was made of.
#pragma once

#include <string>

namespace bev::app {

std::string program_version();
std::string compiler();    // "g++ 12.2.0"
std::string build_kind();  // "release", "with assertions, address sanitizer"

}  // namespace bev::app
