#include "launch/node_messages.h"

#include "base/byte_coding.h"
#include "coordination/coordination_messages.h"

namespace bev {

namespace {

// Before the kind of each: nothing that a rank says is taken for a launcher's.
constexpr uint32_t kMark = 0x4c564542;

void write(ByteWriter& out, const NodeHello& m) {
  for (const int32_t number : {m.number, m.processes, m.least, m.most}) out.number(number);
  out.text(cut(m.host));
  out.text(cut(m.job));
}
void read(ByteReader& in, NodeHello& m) {
  for (int32_t* number : {&m.number, &m.processes, &m.least, &m.most})
    *number = in.number<int32_t>();
  m.host = in.text(kTextMost);
  m.job = in.text(kTextMost);
  BEV_CHECK(m.number >= 0 && m.processes >= 1 && m.processes <= 4096, Comm,
            "machine {} with {} processes", m.number, m.processes);
}

void write(ByteWriter& out, const NodeEnd& m) {
  out.number(m.code);
  out.number(static_cast<uint8_t>(m.by_people));
  out.number(m.seconds);
  out.text(cut(m.words));
}
void read(ByteReader& in, NodeEnd& m) {
  m.code = in.number<int32_t>();
  const auto by_people = in.number<uint8_t>();
  BEV_CHECK(by_people <= 1, Comm, "{} is neither yes nor no", by_people);
  m.by_people = by_people == 1;
  m.seconds = in.real();
  m.words = in.text(kTextMost);
}

void write(ByteWriter& out, const NodeAssignment& m) {
  for (const int32_t number : {m.node, m.nodes, m.first_rank, m.ranks, m.restart})
    out.number(number);
}
void read(ByteReader& in, NodeAssignment& m) {
  for (int32_t* number : {&m.node, &m.nodes, &m.first_rank, &m.ranks, &m.restart})
    *number = in.number<int32_t>();
  BEV_CHECK(m.node >= 0 && m.node < m.nodes && m.first_rank >= 0 && m.first_rank < m.ranks &&
                m.restart >= 0,
            Comm, "machine {} of {} with ranks from {} of {} on", m.node, m.nodes, m.first_rank,
            m.ranks);
}

void write(ByteWriter& out, const NodeNote& m) { out.text(cut(m.text)); }
void read(ByteReader& in, NodeNote& m) { m.text = in.text(kTextMost); }

void write(ByteWriter& out, const NodeStop& m) { out.text(cut(m.why)); }
void read(ByteReader& in, NodeStop& m) { m.why = in.text(kTextMost); }

void write(ByteWriter& out, const NodeJobEnd& m) {
  out.number(m.code);
  out.text(cut(m.words));
}
void read(ByteReader& in, NodeJobEnd& m) {
  m.code = in.number<int32_t>();
  m.words = in.text(kTextMost);
}

void write(ByteWriter&, const NodeHeartbeat&) {}
void read(ByteReader&, NodeHeartbeat&) {}

template <size_t kind = 0>
NodeMessage read_kind(size_t wanted, ByteReader& in) {
  if constexpr (kind < std::variant_size_v<NodeMessage>) {
    if (kind != wanted) return read_kind<kind + 1>(wanted, in);
    std::variant_alternative_t<kind, NodeMessage> message;
    read(in, message);
    return message;
  } else {
    throw Error(ErrorKind::Comm, format("there is no message of kind {}", wanted));
  }
}

}  // namespace

std::string encode_machine(const NodeMessage& message) {
  ByteWriter out;
  out.number(kMark);
  out.number(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& m) { write(out, m); }, message);
  return out.take();
}

NodeMessage decode_machine(std::string_view bytes) {
  ByteReader in(bytes);
  BEV_CHECK(in.number<uint32_t>() == kMark, Comm, "it does not speak as a launcher");
  const auto kind = in.number<uint8_t>();
  NodeMessage message = read_kind(kind, in);
  in.expect_end();
  return message;
}

}  // namespace bev
