#include "report/tensorboard/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/check.h"
#include "net/address.h"

namespace bev {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNameBegins = "events.out.tfevents.";

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

// Turned and shifted, as the format wants it: a checksum over bytes that hold their own checksum
// would say nothing.
std::string masked_checksum(std::string_view bytes) {
  const uint32_t sum = crc32c(bytes);
  return little_endian(((sum >> 15) | (sum << 17)) + 0xa282ead8u);
}

// TIME of the newest event file; -1: there is none.
int64_t newest_time(const fs::path& folder) {
  int64_t newest = -1;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kNameBegins)) continue;
    int64_t time = 0;
    std::from_chars(name.data() + kNameBegins.size(), name.data() + name.size(), time);
    newest = std::max(newest, time);
  }
  return newest;
}

}  // namespace

std::string framed_record(std::string_view data) {
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  std::string record = length + masked_checksum(length);
  record += data;
  return record + masked_checksum(data);
}

fs::path next_event_file(const fs::path& folder, int64_t now) {
  const int64_t time = std::max(now, newest_time(folder) + 1);
  return folder / format("{}{:010d}.{}.{}.0", kNameBegins, time, host_name(), ::getpid());
}

bool has_event_files(const fs::path& folder) { return newest_time(folder) >= 0; }

EventFile::EventFile(const fs::path& path) : path_(path) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  BEV_CHECK(descriptor_ >= 0, Data, "cannot write {}: {}", path_.string(), std::strerror(errno));
}

EventFile::~EventFile() {
  flush();
  ::close(descriptor_);
}

void EventFile::add(std::string_view data) {
  if (!given_up_) waiting_ += framed_record(data);
}

void EventFile::flush() {
  size_t done = 0;
  int error = 0;
  while (done < waiting_.size() && error == 0) {
    const ssize_t put = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
    if (put > 0) {
      done += static_cast<size_t>(put);
    } else if (put == 0 || errno != EINTR) {
      error = put == 0 ? EIO : errno;
    }
  }
  waiting_.erase(0, done);
  if (error == 0) {
    if (!given_up_) failure_.reset();
    return;
  }
  failure_ = format("{} is incomplete: {}", path_.string(), std::strerror(error));
  given_up_ = waiting_.size() > kMostWaiting;
  if (given_up_) waiting_ = {};
}

namespace {

constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // bits reversed
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_table();
  uint32_t rest = 0xffffffff;
  for (const char c : bytes) rest = (rest >> 8) ^ kTable[(rest ^ static_cast<uint8_t>(c)) & 0xff];
  return ~rest;
}

}  // namespace bev
