// What this program was made of.
#pragma once

#include <string>

namespace bev::app {

std::string program_version();
std::string compiler();  // "g++ 12.2.0"
// Of the linker, in hexadecimal digits: another for each build; empty where it made none.
std::string build_id();
std::string build_kind();  // "release", "with assertions, address sanitizer"

}  // namespace bev::app
