#include "coordination/coordination_messages.h"

#include <array>

#include "base/byte_coding.h"

namespace bev {

namespace {

constexpr size_t kPlaceBytes = 4 + 8;  // of a place with an empty name

void write(ByteWriter& out, const RankIdentity& place) {
  out.number(place.rank);
  out.text(place.host);
  out.number(place.pid);
}

RankIdentity read_place(ByteReader& in) {
  RankIdentity place;
  place.rank = in.number<int>();
  place.host = in.text(kTextMost);
  place.pid = in.number<int64_t>();
  return place;
}

void write(ByteWriter& out, const HelloMessage& m) {
  out.number(m.rank);
  out.number(m.size);
  out.text(m.job);
  out.text(m.host);
  out.number(m.pid);
}
void read(ByteReader& in, HelloMessage& m) {
  m.rank = in.number<int32_t>();
  m.size = in.number<int32_t>();
  m.job = in.text(kJobMost);
  m.host = in.text(kTextMost);
  m.pid = in.number<int64_t>();
}

void write(ByteWriter& out, const GroupMessage& m) {
  out.number(static_cast<uint32_t>(m.ranks.size()));
  for (const int32_t rank : m.ranks) out.number(rank);
}
void read(ByteReader& in, GroupMessage& m) {
  m.ranks.resize(in.count(sizeof(int32_t)));
  for (int32_t& rank : m.ranks) rank = in.number<int32_t>();
}

void write(ByteWriter& out, const AllReduceMaxMessage& m) {
  out.number(m.request);
  out.number(m.group);
  out.number(m.value);
}
void read(ByteReader& in, AllReduceMaxMessage& m) {
  m.request = in.number<uint64_t>();
  m.group = in.number<uint32_t>();
  m.value = in.number<int64_t>();
}

void write(ByteWriter& out, const AllGatherMessage& m) {
  out.number(m.request);
  out.text(m.value);
}
void read(ByteReader& in, AllGatherMessage& m) {
  m.request = in.number<uint64_t>();
  m.value = in.text(kExchangeMost);
}

void write(ByteWriter& out, const PutMessage& m) {
  out.number(m.request);
  out.text(m.key);
  out.text(m.value);
}
void read(ByteReader& in, PutMessage& m) {
  m.request = in.number<uint64_t>();
  m.key = in.text(kKeyMost);
  m.value = in.text(kExchangeMost);
}

void write(ByteWriter& out, const GetMessage& m) {
  out.number(m.request);
  out.text(m.key);
}
void read(ByteReader& in, GetMessage& m) {
  m.request = in.number<uint64_t>();
  m.key = in.text(kKeyMost);
}

void write(ByteWriter& out, const TimesMessage& m) {
  out.number(m.times.step);
  out.number(m.times.compute);
  out.number(m.times.wait);
}
void read(ByteReader& in, TimesMessage& m) {
  m.times.step = in.number<int64_t>();
  m.times.compute = in.real();
  m.times.wait = in.real();
}

void write(ByteWriter& out, const AbandonMessage& m) {
  out.text(m.why);
  out.text(m.doing);
}
void read(ByteReader& in, AbandonMessage& m) {
  m.why = in.text(kTextMost);
  m.doing = in.text(kTextMost);
}

void write(ByteWriter&, const FinishMessage&) {}
void read(ByteReader&, FinishMessage&) {}

void write(ByteWriter& out, const HeartbeatMessage& m) { out.text(m.doing); }
void read(ByteReader& in, HeartbeatMessage& m) { m.doing = in.text(kTextMost); }

void write(ByteWriter& out, const RefusedMessage& m) { out.text(m.why); }
void read(ByteReader& in, RefusedMessage& m) { m.why = in.text(kTextMost); }

void write(ByteWriter& out, const WaitingMessage& m) { out.text(m.missing); }
void read(ByteReader& in, WaitingMessage& m) { m.missing = in.text(kTextMost); }

void write(ByteWriter& out, const JoinedMessage& m) {
  out.number(static_cast<uint32_t>(m.places.size()));
  for (const RankIdentity& place : m.places) {
    out.text(place.host);
    out.number(place.pid);
  }
}
void read(ByteReader& in, JoinedMessage& m) {
  m.places.resize(in.count(kPlaceBytes));
  int rank = 0;
  for (RankIdentity& place : m.places) {
    place.rank = rank++;
    place.host = in.text(kTextMost);
    place.pid = in.number<int64_t>();
  }
}

void write(ByteWriter& out, const AllReduceMaxReply& m) {
  out.number(m.request);
  out.number(m.value);
}
void read(ByteReader& in, AllReduceMaxReply& m) {
  m.request = in.number<uint64_t>();
  m.value = in.number<int64_t>();
}

void write(ByteWriter& out, const AllGatherReply& m) {
  out.number(m.request);
  out.number(static_cast<uint32_t>(m.values.size()));
  for (const std::string& value : m.values) out.text(value);
  out.number(static_cast<uint32_t>(m.of_rank.size()));
  for (const uint32_t value : m.of_rank) out.number(value);
}
void read(ByteReader& in, AllGatherReply& m) {
  m.request = in.number<uint64_t>();
  m.values.resize(in.count(sizeof(uint32_t)));
  for (std::string& value : m.values) value = in.text(kExchangeMost);
  m.of_rank.resize(in.count(sizeof(uint32_t)));
  for (uint32_t& value : m.of_rank) {
    value = in.number<uint32_t>();
    BEV_CHECK(value < m.values.size(), Comm, "value {} of {}", value, m.values.size());
  }
}

void write(ByteWriter& out, const PutReply& m) { out.number(m.request); }
void read(ByteReader& in, PutReply& m) { m.request = in.number<uint64_t>(); }

void write(ByteWriter& out, const GotMessage& m) {
  out.number(m.request);
  out.text(m.value);
}
void read(ByteReader& in, GotMessage& m) {
  m.request = in.number<uint64_t>();
  m.value = in.text(kExchangeMost);
}

void write(ByteWriter& out, const ErrorReply& m) {
  out.number(m.request);
  out.number(static_cast<uint8_t>(m.is_bug));
  out.text(m.why);
}
void read(ByteReader& in, ErrorReply& m) {
  m.request = in.number<uint64_t>();
  const auto bug = in.number<uint8_t>();
  BEV_CHECK(bug <= 1, Comm, "{} is neither yes nor no", bug);
  m.is_bug = bug == 1;
  m.why = in.text(kTextMost);
}

void write(ByteWriter& out, const LogMessage& m) { out.text(m.text); }
void read(ByteReader& in, LogMessage& m) { m.text = in.text(kTextMost); }

void write(ByteWriter& out, const FailedMessage& m) {
  write(out, m.failure.who);
  out.text(m.failure.doing);
  out.text(m.failure.why);
}
void read(ByteReader& in, FailedMessage& m) {
  m.failure.who = read_place(in);
  m.failure.doing = in.text(kTextMost);
  m.failure.why = in.text(kTextMost);
}

void write(ByteWriter&, const AllFinishedMessage&) {}
void read(ByteReader&, AllFinishedMessage&) {}

template <class T>
CoordinationMessage read_as(ByteReader& in) {
  T message;
  read(in, message);
  return message;
}

// One reader for each alternative, in their order.
template <size_t... I>
CoordinationMessage read_type(size_t type, ByteReader& in, std::index_sequence<I...>) {
  using Reader = CoordinationMessage (*)(ByteReader&);
  constexpr std::array<Reader, sizeof...(I)> kReaders{
      read_as<std::variant_alternative_t<I, CoordinationMessage::variant>>...};
  return kReaders[type](in);
}

}  // namespace

std::string encode(const CoordinationMessage& message) {
  ByteWriter out;
  out.number(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& each) { write(out, each); }, message);
  return out.take();
}

CoordinationMessage decode(std::string_view bytes) {
  ByteReader in(bytes);
  const auto type = in.number<uint8_t>();
  BEV_CHECK(type < std::variant_size_v<CoordinationMessage::variant>, Comm,
            "a message of unknown type {}", type);
  CoordinationMessage message = read_type(
      type, in, std::make_index_sequence<std::variant_size_v<CoordinationMessage::variant>>());
  in.expect_end();
  return message;
}

std::string cut(std::string text) {
  constexpr std::string_view kEnd = " ...";
  if (text.size() > kTextMost) text.replace(kTextMost - kEnd.size(), std::string::npos, kEnd);
  return text;
}

}  // namespace bev
