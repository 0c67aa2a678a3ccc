// libFuzzer: any bytes as a message between ranks are refused with a Comm error or mean what
// encodes to the same bytes; and JobState answers any messages of ranks with messages
// or refuses with a Comm error. The input is a row of messages, each with a byte for its rank and
// two for its size in front.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "coordination/coordination_messages.h"
#include "coordination/job_state.h"

namespace {

constexpr int kRanks = 3;

void require(bool condition) {
  if (!condition) std::abort();
}

// Absent: refused.
std::optional<bev::CoordinationMessage> decode(std::string_view bytes) {
  try {
    bev::CoordinationMessage message = bev::decode(bytes);
    require(bev::encode(message) == bytes);
    return message;
  } catch (const bev::Error& error) {
    require(error.kind == bev::ErrorKind::Comm);
    return std::nullopt;
  }
}

void speak(std::string_view bytes) {
  std::vector<bev::RankIdentity> places;
  for (int rank = 0; rank < kRanks; ++rank)
    places.push_back({.rank = rank, .host = "h", .pid = rank});
  using std::chrono::milliseconds;
  bev::JobState job_state(places,
                          {.heartbeat = milliseconds(10),
                           .heartbeat_timeout = milliseconds(50),
                           .limit = milliseconds(200)},
                          [](int rank, const bev::Parcel& parcel) {
                            require(rank >= 0 && rank < kRanks);
                            require(bev::encode(bev::decode(*parcel)) == *parcel);
                          });
  auto now = std::chrono::steady_clock::now();
  std::set<int> lost;
  while (bytes.size() >= 3) {
    const int rank = static_cast<unsigned char>(bytes[0]) % kRanks;
    const bool pause = (bytes[0] & 0x80) != 0;
    const size_t size = static_cast<unsigned char>(bytes[1]) | (bytes[2] & 0x1F) << 8;
    const std::string_view message = bytes.substr(3, size);
    bytes.remove_prefix(3 + message.size());
    if (pause) job_state.tick(now += milliseconds(7), "computing");
    if (lost.contains(rank)) continue;
    job_state.received(rank, now);
    std::optional<bev::CoordinationMessage> decoded = decode(message);
    try {
      if (decoded) job_state.take(rank, std::move(*decoded), now);
    } catch (const bev::Error& error) {
      require(error.kind == bev::ErrorKind::Comm);
      decoded.reset();
    }
    if (decoded) continue;
    lost.insert(rank);
    job_state.lost(rank, "nonsense");
  }
  for (int i = 0; i < 50; ++i) job_state.tick(now += milliseconds(7), "computing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)decode(bytes);
  speak(bytes);
  return 0;
}
