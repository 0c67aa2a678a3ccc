#include "support/event_reader.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace bev::test {

namespace {

// Bit by bit, as the definition has it.
uint32_t checksum(std::string_view bytes) {
  uint32_t rest = ~0u;
  for (const char c : bytes) {
    rest ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? (rest >> 1) ^ 0x82f63b78 : rest >> 1;
  }
  return ~rest;
}

uint32_t unmasked(uint32_t masked) { return std::rotl(masked - 0xa282ead8u, 15); }

template <class T>
T take(std::string_view& bytes) {
  if (bytes.size() < sizeof(T)) throw std::runtime_error("a message is cut off");
  T value;
  std::copy_n(bytes.begin(), sizeof value, reinterpret_cast<char*>(&value));
  bytes.remove_prefix(sizeof value);
  return value;
}

void check(std::string_view bytes, uint32_t masked) {
  if (checksum(bytes) != unmasked(masked)) throw std::runtime_error("a checksum is wrong");
}

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<uint8_t>(bytes);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

struct Field {
  int number = 0;
  uint64_t bits = 0;        // of a number, as it is on the wire
  std::string_view data{};  // of a string or a message
};

std::vector<Field> fields(std::string_view message) {
  std::vector<Field> found;
  while (!message.empty()) {
    const uint64_t key = take_varint(message);
    Field field{.number = static_cast<int>(key >> 3)};
    switch (key & 7) {
      case 0: field.bits = take_varint(message); break;
      case 1: field.bits = take<uint64_t>(message); break;
      case 5: field.bits = take<uint32_t>(message); break;
      case 2: {
        const uint64_t size = take_varint(message);
        if (size > message.size()) throw std::runtime_error("a field is cut off");
        field.data = message.substr(0, size);
        message.remove_prefix(size);
        break;
      }
      default: throw std::runtime_error("an unknown kind of field");
    }
    found.push_back(field);
  }
  return found;
}

// The string at the end of a path of field numbers; the last one where there are several.
std::string inside(std::string_view message, std::initializer_list<int> path) {
  for (const int number : path) {
    std::string_view next;
    for (const Field& field : fields(message)) {
      if (field.number == number) next = field.data;
    }
    message = next;
  }
  return std::string(message);
}

ReadPoint read_point(std::string_view message) {
  ReadPoint point{.tag = inside(message, {1}),
                  .plugin = inside(message, {9, 1, 1}),
                  .text = inside(message, {8, 8})};
  for (const Field& field : fields(message)) {
    if (field.number == 2) point.y = std::bit_cast<float>(static_cast<uint32_t>(field.bits));
  }
  return point;
}

std::vector<ReadEvent> events_of_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  std::vector<ReadEvent> all;
  for (const auto& file : files) {
    for (ReadEvent& event : read_events(file)) all.push_back(std::move(event));
  }
  return all;
}

void drop_from(Curves& curves, const std::string& tag, int64_t x) {
  std::erase_if(curves[tag], [&](const auto& point) { return point.first >= x; });
}

void add_scalars(Curves& curves, const ReadEvent& event) {
  for (const ReadPoint& point : event.points) {
    if (point.plugin.empty()) curves[point.tag].emplace_back(event.step, point.y);
  }
}

}  // namespace

std::vector<std::string> read_records(std::string_view file) {
  std::vector<std::string> records;
  while (file.size() >= 12) {
    const std::string_view head = file.substr(0, 8);
    const auto size = take<uint64_t>(file);
    check(head, take<uint32_t>(file));
    if (file.size() < size + 4) break;
    records.emplace_back(file.substr(0, size));
    file.remove_prefix(size);
    check(records.back(), take<uint32_t>(file));
  }
  return records;
}

ReadEvent read_event(std::string_view data) {
  ReadEvent event{.version = inside(data, {3})};
  for (const Field& field : fields(data)) {
    if (field.number == 1) event.time = std::bit_cast<double>(field.bits);
    if (field.number == 2) event.step = static_cast<int64_t>(field.bits);
    if (field.number != 5) continue;
    event.is_summary = true;
    for (const Field& value : fields(field.data)) event.points.push_back(read_point(value.data));
  }
  return event;
}

std::vector<ReadEvent> read_events(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  std::vector<ReadEvent> events;
  for (const std::string& record : read_records(bytes)) events.push_back(read_event(record));
  return events;
}

Curves curves_of_python(const std::filesystem::path& folder) {
  Curves curves;
  int64_t last = -1;
  bool is_old = false;
  for (const ReadEvent& event : events_of_folder(folder)) {
    if (!event.version.empty()) is_old = event.version != "brain.Event:2";
    if (!event.is_summary) continue;
    if (is_old && event.step < last) {
      for (const ReadPoint& point : event.points) drop_from(curves, point.tag, event.step);
    }
    last = event.step;
    add_scalars(curves, event);
  }
  std::erase_if(curves, [](const auto& curve) { return curve.second.empty(); });
  return curves;
}

Curves curves_of_fast_loader(const std::filesystem::path& folder) {
  Curves curves;
  for (const ReadEvent& event : events_of_folder(folder)) {
    for (const ReadPoint& point : event.points) drop_from(curves, point.tag, event.step);
    add_scalars(curves, event);
  }
  std::erase_if(curves, [](const auto& curve) { return curve.second.empty(); });
  return curves;
}

}  // namespace bev::test
