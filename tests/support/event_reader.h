// Event files of TensorBoard read back, without any of the code that wrote them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bev::test {

struct ReadPoint {
  std::string tag;
  float y = 0;
  std::string plugin{}, text{};  // of a text
};

struct ReadEvent {
  double time = 0;
  int64_t step = 0;
  std::string version{};
  bool is_summary = false;
  std::vector<ReadPoint> points{};
};

// The data of all records. Throws std::runtime_error at a wrong checksum; a record that is cut off
// at the end is left out.
std::vector<std::string> read_records(std::string_view file);
ReadEvent read_event(std::string_view data);
std::vector<ReadEvent> read_events(const std::filesystem::path& file);

// x and y of each tag that has scalars.
using Curves = std::map<std::string, std::vector<std::pair<int64_t, float>>>;
// What TensorBoard's readers in Python show of the files of a folder.
Curves curves_of_python(const std::filesystem::path& folder);
// What its fast loader shows.
Curves curves_of_fast_loader(const std::filesystem::path& folder);

}  // namespace bev::test
