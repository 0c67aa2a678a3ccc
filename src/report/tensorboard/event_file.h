// A file of records as TensorFlow frames them: length, checksum of it, data, checksum of that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace bev {

// The data with its frame.
std::string framed_record(std::string_view data);

// Where the next event file of a folder belongs: events.out.tfevents.TIME.HOST.PID.0. Readers take
// the files of a folder in the order of their names, so TIME is `now` (seconds since 1970), or
// later where a file of a later TIME is there: the clock of another machine, or two runs in one
// second.
std::filesystem::path next_event_file(const std::filesystem::path& folder, int64_t now);
bool has_event_files(const std::filesystem::path& folder);

// Records wait in memory until flush(), which appends them with one write. What a disk does not
// take is kept and goes with a later flush, so that a disk that was full for a while leaves no gap;
// beyond kMostWaiting bytes the file is given up.
class EventFile {
 public:
  static constexpr size_t kMostWaiting = size_t{16} << 20;

  // Data error when it cannot be opened.
  explicit EventFile(const std::filesystem::path& path);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void add(std::string_view data);
  void flush();

  const std::filesystem::path& path() const { return path_; }
  // Why records that were flushed are not in the file, as long as that is so.
  const std::optional<std::string>& failure() const { return failure_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::string waiting_;
  bool given_up_ = false;
  std::optional<std::string> failure_;
};

// CRC-32C (Castagnoli), the checksum of iSCSI and of TensorFlow's files.

uint32_t crc32c(std::string_view bytes);

}  // namespace bev
