// Messages between the launchers of several machines, which agree before each attempt which of them
// take part.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace bev {

// From a launcher to that of the first machine.
struct NodeHello {
  int32_t number = 0;  // of the machine, as --node-rank has it
  int32_t processes = 1;
  int32_t least = 1, most = 1;  // of the machines
  std::string host{}, job{};
};

// From a launcher to that of the first machine: how its ranks ended in an attempt.
struct NodeEnd {
  int32_t code = 0;
  bool by_people = false;
  double seconds = 0;
  std::string words{};  // as AttemptEnd has them
};

// From the first machine: the ranks of this one start.
struct NodeAssignment {
  int32_t node = 0, nodes = 1;
  int32_t first_rank = 0, ranks = 1;  // of how many in all
  int32_t restart = 0;
};

// A line that the launcher prints.
struct NodeNote {
  std::string text{};
};

// The attempt has failed elsewhere; its ranks must end.
struct NodeStop {
  std::string why{};
};

// The job has ended, or this machine has no part in it.
struct NodeJobEnd {
  int32_t code = 0;
  std::string words{};
};

// In both directions: the sender is alive.
struct NodeHeartbeat {};

using NodeMessage =
    std::variant<NodeHello, NodeEnd, NodeAssignment, NodeNote, NodeStop, NodeJobEnd, NodeHeartbeat>;

inline constexpr size_t kNodeMessageMost = size_t{64} << 10;

// Long texts are cut.
std::string encode_node_message(const NodeMessage& message);
// A Comm error where the bytes are none.
NodeMessage decode_node_message(std::string_view bytes);

// Heartbeat interval, and the timeout after which a machine is presumed dead: a pulled cable closes
// no connection.
inline constexpr std::chrono::seconds kNodeHeartbeat{5}, kNodeTimeout{60};

}  // namespace bev
