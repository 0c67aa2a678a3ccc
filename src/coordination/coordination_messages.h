// Messages between the ranks and the server of the first rank, as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/activity.h"
#include "coordination/rank_text.h"
#include "net/secure_link.h"

namespace bev {

// The longest message: all that an exchange may carry, and a little.
inline constexpr size_t kMessageMost = (size_t{256} << 20) + (size_t{1} << 20);
// What all ranks may bring to an exchange together, and what all keys may hold.
inline constexpr size_t kExchangeMost = size_t{256} << 20;
inline constexpr size_t kKeyMost = size_t{4} << 10;
// What is longer is cut when it is sent.
inline constexpr size_t kTextMost = size_t{4} << 10;
inline constexpr size_t kJobMost = size_t{64} << 10;
// Exchanges are numbered from here by every rank, so that all get the same answer; other requests
// stay below.
inline constexpr uint64_t kFirstExchange = uint64_t{1} << 63;

// From a rank to the server. `request` comes back in the answer.
struct HelloMessage {
  int32_t rank = 0, size = 0;
  std::string job, host;
  int64_t pid = 0;
};
struct GroupMessage {  // numbered in the order in which a rank sends them
  std::vector<int32_t> ranks;
};
struct AllReduceMaxMessage {
  uint64_t request = 0;
  uint32_t group = 0;
  int64_t value = 0;
};
struct AllGatherMessage {
  uint64_t request = 0;
  std::string value;
};
struct PutMessage {
  uint64_t request = 0;
  std::string key, value;
};
struct GetMessage {
  uint64_t request = 0;
  std::string key;
};
struct TimesMessage {
  RankTimes times;
};
struct AbandonMessage {
  std::string why, doing;
};
struct FinishMessage {};

// In both directions: the sender is alive; what it is doing.
struct HeartbeatMessage {
  std::string doing;
};

// From the server to a rank.
struct RefusedMessage {
  std::string why;
};
struct WaitingMessage {
  std::string missing;
};
struct JoinedMessage {
  std::vector<RankIdentity> places;  // their ranks are their positions
};
struct AllReduceMaxReply {
  uint64_t request = 0;
  int64_t value = 0;
};
struct AllGatherReply {
  uint64_t request = 0;
  std::vector<std::string> values;  // each once
  std::vector<uint32_t> of_rank;    // which of them
};
struct PutReply {
  uint64_t request = 0;
};
struct GotMessage {
  uint64_t request = 0;
  std::string value;
};
struct ErrorReply {
  uint64_t request = 0;
  bool is_bug = false;  // an Internal error instead of a Comm error
  std::string why;
};
struct LogMessage {
  std::string text;
};
struct FailedMessage {
  Failure failure;
};
struct AllFinishedMessage {};

// The order is the number of the type in the first byte.
struct CoordinationMessage
    : std::variant<HelloMessage, GroupMessage, AllReduceMaxMessage, AllGatherMessage, PutMessage,
                   GetMessage, TimesMessage, AbandonMessage, FinishMessage, HeartbeatMessage,
                   RefusedMessage, WaitingMessage, JoinedMessage, AllReduceMaxReply, AllGatherReply,
                   PutReply, GotMessage, ErrorReply, LogMessage, FailedMessage,
                   AllFinishedMessage> {
  using variant::variant;
};

std::string encode(const CoordinationMessage& message);
inline Parcel parcel_of(const CoordinationMessage& message) {
  return std::make_shared<const std::string>(encode(message));
}
// Accepts what encode() makes and nothing else; a Comm error says what is wrong.
CoordinationMessage decode(std::string_view bytes);

// At most kTextMost bytes of it.
std::string cut(std::string text);

}  // namespace bev
