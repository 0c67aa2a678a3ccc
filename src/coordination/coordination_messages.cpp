#include "coordination/coordination_messages.h"

#include "base/byte_coding.h"

namespace bev {

namespace {

constexpr size_t kPlaceBytes = 4 + 8;  // encoded size of a rank with an empty host name

auto short_text(auto& text) { return bounded(text, kTextMost); }

void code(auto& coder, Coded<HelloMessage> auto& m) {
  coder(m.rank, m.size, bounded(m.job, kJobMost), short_text(m.host), m.pid);
}
void code(auto& coder, Coded<GroupMessage> auto& m) {
  coder.list(m.ranks, sizeof(int32_t), [&](auto& rank) { coder(rank); });
}
void code(auto& coder, Coded<AllReduceMaxMessage> auto& m) { coder(m.request, m.group, m.value); }
void code(auto& coder, Coded<AllGatherMessage> auto& m) {
  coder(m.request, bounded(m.value, kExchangeMost));
}
void code(auto& coder, Coded<PutMessage> auto& m) {
  coder(m.request, bounded(m.key, kKeyMost), bounded(m.value, kExchangeMost));
}
void code(auto& coder, Coded<GetMessage> auto& m) { coder(m.request, bounded(m.key, kKeyMost)); }
void code(auto& coder, Coded<TimesMessage> auto& m) {
  coder(m.times.step, m.times.compute, m.times.wait);
}
void code(auto& coder, Coded<AbandonMessage> auto& m) {
  coder(short_text(m.why), short_text(m.doing));
}
void code(auto&, Coded<FinishMessage> auto&) {}
void code(auto& coder, Coded<HeartbeatMessage> auto& m) { coder(short_text(m.doing)); }
void code(auto& coder, Coded<RefusedMessage> auto& m) { coder(short_text(m.why)); }
void code(auto& coder, Coded<WaitingMessage> auto& m) { coder(short_text(m.missing)); }
void code(auto& coder, Coded<JoinedMessage> auto& m) {
  coder.list(m.places, kPlaceBytes, [&](auto& place) { coder(short_text(place.host), place.pid); });
}
void code(auto& coder, Coded<AllReduceMaxReply> auto& m) { coder(m.request, m.value); }
void code(auto& coder, Coded<AllGatherReply> auto& m) {
  coder(m.request);
  coder.list(m.values, sizeof(uint32_t),
             [&](auto& value) { coder(bounded(value, kExchangeMost)); });
  coder.list(m.of_rank, sizeof(uint32_t), [&](auto& value) { coder(value); });
}
void code(auto& coder, Coded<PutReply> auto& m) { coder(m.request); }
void code(auto& coder, Coded<GotMessage> auto& m) {
  coder(m.request, bounded(m.value, kExchangeMost));
}
void code(auto& coder, Coded<ErrorReply> auto& m) { coder(m.request, m.is_bug, short_text(m.why)); }
void code(auto& coder, Coded<LogMessage> auto& m) { coder(short_text(m.text)); }
void code(auto& coder, Coded<FailedMessage> auto& m) {
  auto& [who, doing, why] = m.failure;
  coder(who.rank, short_text(who.host), who.pid, short_text(doing), short_text(why));
}
void code(auto&, Coded<AllFinishedMessage> auto&) {}

// Completes and validates a message after its fields have been decoded.
void after_reading(auto&) {}
void after_reading(JoinedMessage& m) {
  for (size_t rank = 0; rank < m.places.size(); ++rank)
    m.places[rank].rank = static_cast<int>(rank);
}
void after_reading(AllGatherReply& m) {
  for (const uint32_t value : m.of_rank)
    BEV_CHECK(value < m.values.size(), Comm, "value {} of {}", value, m.values.size());
}

}  // namespace

std::string encode(const CoordinationMessage& message) {
  ByteWriter out;
  out(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& each) { code(out, each); }, message);
  return out.take();
}

CoordinationMessage decode(std::string_view bytes) {
  using Variant = CoordinationMessage::variant;
  ByteReader in(bytes);
  const auto type = in.number<uint8_t>();
  BEV_CHECK(type < std::variant_size_v<Variant>, Comm, "a message of unknown type {}", type);
  Variant message = alternative<Variant>(type);
  return std::visit(
      [&](auto& each) -> CoordinationMessage {
        code(in, each);
        in.expect_end();
        after_reading(each);
        return std::move(each);
      },
      message);
}

std::string cut(std::string text) {
  constexpr std::string_view kEnd = " ...";
  if (text.size() > kTextMost) text.replace(kTextMost - kEnd.size(), std::string::npos, kEnd);
  return text;
}

}  // namespace bev
