// Text files in /proc and /sys, whose size is not known before reading. A missing file gives "".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace bev {

// The first line.
std::string system_line(const std::filesystem::path& path);

// The text after the first colon of the first line that starts with `key`.
std::string system_value(const std::filesystem::path& path, std::string_view key);

}  // namespace bev
