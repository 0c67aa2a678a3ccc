#include "launch/node_client.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "launch/node_messages.h"
#include "net/address.h"
#include "net/socket.h"

namespace bev {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstPause{50}, kLongestPause{1000};
constexpr milliseconds kFirstNote{2000}, kNextNote{30000};

}  // namespace

int NodeClient::join(const Options& options, const SignalQueue& signals) {
  there_ = host_and_port(options.host, options.port);
  note_ = options.note;
  const auto started = steady_clock::now();
  auto next_note = started + kFirstNote;
  milliseconds pause_for = kFirstPause;
  for (std::string why;;) {
    connection_ = connect_securely(options.host, options.port, HmacKey(options.secret),
                                   kNodeMessageMost, started + options.limit,
                                   format("cannot join the first machine at {}", there_), why);
    if (connection_ != nullptr) break;
    const auto now = steady_clock::now();
    BEV_CHECK(now - started < options.limit, Comm,
              "the launcher of the first machine is not at {} after {} s: {}; the same command "
              "with --node-rank 0 must run there",
              there_, std::chrono::duration_cast<std::chrono::seconds>(now - started).count(), why);
    if (now >= next_note) {
      next_note = now + kNextNote;
      note_(format("the launcher of the first machine is not at {} yet: {}", there_, why));
    }
    if (const int signal = pause(signals, pause_for)) return signal;
    pause_for = std::min(2 * pause_for, kLongestPause);
  }
  last_received_ = steady_clock::now();
  send(options.hello);
  note_(format("at the first machine, {}, as machine {}", there_, options.hello.number));
  return 0;
}

void NodeClient::look() {
  if (over_) return;
  const auto now = steady_clock::now();
  try {
    const uint64_t before = connection_->bytes_read();
    const Reading reading =
        connection_->receive([&](const std::string& bytes) { take(decode_node_message(bytes)); });
    if (connection_->bytes_read() != before) last_received_ = now;
    connection_->flush();
    if (reading == Reading::Closed) lose("its connection closed");
  } catch (const Error& error) {
    lose(error.what());
  }
  if (now - last_received_ >= kNodeTimeout)
    lose(format("no heartbeat for {} s", kNodeTimeout.count()));
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + kNodeHeartbeat;
  send(NodeHeartbeat{});
}

void NodeClient::take(const NodeMessage& message) {
  if (over_) return;
  if (const auto* place = std::get_if<NodeAssignment>(&message)) {
    place_ = *place;
    stop_.clear();
  } else if (const auto* text = std::get_if<NodeNote>(&message)) {
    note_(text->text);
  } else if (const auto* stop = std::get_if<NodeStop>(&message)) {
    stop_ = stop->why;
  } else if (const auto* over = std::get_if<NodeJobEnd>(&message)) {
    over_ = *over;
  } else {
    BEV_CHECK(std::holds_alternative<NodeHeartbeat>(message), Comm,
              "it says what a first machine does not say");
  }
}

void NodeClient::send(const NodeMessage& message) {
  if (over_) return;
  try {
    connection_->send(std::make_shared<const std::string>(encode_node_message(message)));
    connection_->flush();
  } catch (const Error& error) {
    lose(error.what());
  }
}

void NodeClient::lose(const std::string& why) {
  if (over_) return;
  over_ = NodeJobEnd{
      .code = exit_code(ErrorKind::Comm),
      .words = format("the launcher of the first machine, {}, is gone: {}; without it the job ends "
                      "here. Started again on all machines, a command with --load continues",
                      there_, why)};
}

std::string NodeClient::end_wanted() const {
  return over_ ? "the first machine has left the job" : stop_;
}

std::optional<NodeAssignment> NodeClient::take_place() { return std::exchange(place_, {}); }

}  // namespace bev
