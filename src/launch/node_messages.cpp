#include "launch/node_messages.h"

#include "base/byte_coding.h"
#include "coordination/coordination_messages.h"

namespace bev {

namespace {

// The first field of every message, so that a message of a rank is not taken for one of a launcher.
constexpr uint32_t kMark = 0x4c564542;

// Strings of more than kTextMost bytes are truncated when they are written, and rejected when read.
std::string short_text(const std::string& text) { return cut(text); }
BoundedText short_text(std::string& text) { return bounded(text, kTextMost); }

void code(auto& coder, Coded<NodeHello> auto& m) {
  coder(m.number, m.processes, m.least, m.most, short_text(m.host), short_text(m.job));
}
void code(auto& coder, Coded<NodeEnd> auto& m) {
  coder(m.code, m.by_people, m.seconds, short_text(m.words));
}
void code(auto& coder, Coded<NodeAssignment> auto& m) {
  coder(m.node, m.nodes, m.first_rank, m.ranks, m.restart);
}
void code(auto& coder, Coded<NodeNote> auto& m) { coder(short_text(m.text)); }
void code(auto& coder, Coded<NodeStop> auto& m) { coder(short_text(m.why)); }
void code(auto& coder, Coded<NodeJobEnd> auto& m) { coder(m.code, short_text(m.words)); }
void code(auto&, Coded<NodeHeartbeat> auto&) {}

void check(const auto&) {}
void check(const NodeHello& m) {
  BEV_CHECK(m.number >= 0 && m.processes >= 1 && m.processes <= 4096, Comm,
            "machine {} with {} processes", m.number, m.processes);
}
void check(const NodeAssignment& m) {
  BEV_CHECK(m.node >= 0 && m.node < m.nodes && m.first_rank >= 0 && m.first_rank < m.ranks &&
                m.restart >= 0,
            Comm, "machine {} of {} with ranks from {} of {} on", m.node, m.nodes, m.first_rank,
            m.ranks);
}

}  // namespace

std::string encode_node_message(const NodeMessage& message) {
  ByteWriter out;
  out(kMark, static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& m) { code(out, m); }, message);
  return out.take();
}

NodeMessage decode_node_message(std::string_view bytes) {
  ByteReader in(bytes);
  BEV_CHECK(in.number<uint32_t>() == kMark, Comm, "it does not speak as a launcher");
  const auto kind = in.number<uint8_t>();
  BEV_CHECK(kind < std::variant_size_v<NodeMessage>, Comm, "there is no message of kind {}", kind);
  NodeMessage message = alternative<NodeMessage>(kind);
  std::visit([&](auto& m) { code(in, m); }, message);
  in.expect_end();
  std::visit([](const auto& m) { check(m); }, message);
  return message;
}

}  // namespace bev
