#include "net/port_owner.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/format.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

// A row of /proc/net/tcp: number, own address:port, other address:port, state, and the inode as the
// tenth word. State 0A listens.
void add_inodes(const char* table, int port, std::set<std::string>& inodes) {
  std::ifstream file(table);
  const std::string ending = format(":{:04X}", port);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string number, here, there, state, skipped, inode;
    words >> number >> here >> there >> state;
    for (int i = 0; i < 5; ++i) words >> skipped;
    if (words >> inode && here.ends_with(ending) && state == "0A")
      inodes.insert(format("socket:[{}]", inode));
  }
}

bool holds_any(const fs::path& process, const std::set<std::string>& inodes) {
  std::error_code failure;
  for (fs::directory_iterator each(process / "fd", failure), end; !failure && each != end;
       each.increment(failure)) {
    std::error_code unreadable;
    if (inodes.contains(fs::read_symlink(each->path(), unreadable).string())) return true;
  }
  return false;
}

}  // namespace

std::string port_owner(int port) {
  std::set<std::string> inodes;
  add_inodes("/proc/net/tcp", port, inodes);
  add_inodes("/proc/net/tcp6", port, inodes);
  if (inodes.empty()) return "";
  std::error_code failure;
  for (fs::directory_iterator each("/proc", failure), end; !failure && each != end;
       each.increment(failure)) {
    const std::string pid = each->path().filename().string();
    if (!std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
      continue;
    if (!holds_any(each->path(), inodes)) continue;
    std::string name;
    std::ifstream(each->path() / "comm") >> name;
    return format("{} (pid {})", name.empty() ? "a process" : name, pid);
  }
  return "";
}

}  // namespace bev
