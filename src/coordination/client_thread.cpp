// The thread of a rank that receives from the server and sends it heartbeats.
#include <poll.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/format.h"
#include "coordination/coordination_client.h"
#include "coordination/coordination_messages.h"
#include "coordination/rank_text.h"
#include "net/secure_link.h"

namespace bev {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

}  // namespace

void CoordinationClient::watch() {
  try {
    for (const std::string& bytes : early_messages_) take(decode(bytes));
  } catch (const Error& error) {
    is_reading_ = false;
    fail({.who = place(0), .doing = doing_of_first_, .why = error.what()});
  }
  for (;;) {
    {
      const Lock lock(mutex_);
      if (is_stopping_) return;
    }
    watch_once();
  }
}

void CoordinationClient::watch_once() {
  bool out = false;
  {
    const Lock lock(mutex_);
    out = wants_out_;
  }
  const auto tick = std::clamp(options_.heartbeat / 2, milliseconds(5), milliseconds(500));
  std::array<pollfd, 2> entries{pollfd{.fd = wake_.descriptor(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = is_reading_ ? connection_->descriptor() : -1,
                                       .events = static_cast<short>(POLLIN | (out ? POLLOUT : 0)),
                                       .revents = 0}};
  // Nothing is left to do when the connection is no more but to wait for the end.
  const int ready =
      ::poll(entries.data(), entries.size(), is_reading_ ? static_cast<int>(tick.count()) : -1);
  if (ready < 0) entries[0].revents = entries[1].revents = 0;
  if (entries[0].revents != 0) wake_.clear();
  if (entries[1].revents != 0) receive();
  const Time now = steady_clock::now();
  send_heartbeat(now);
  check_heartbeats(now);
  close_sending();
}

void CoordinationClient::receive() {
  const uint64_t before = connection_->bytes_read();
  std::string why;
  try {
    const Reading reading =
        connection_->receive([this](const std::string& bytes) { take(decode(bytes)); });
    if (reading == Reading::Closed) why = "its connection closed";
  } catch (const Error& error) {
    why = format("its connection broke: {}", error.what());
  }
  if (connection_->bytes_read() != before &&
      heartbeat_monitor_.received(awake_.at(steady_clock::now())) ==
          HeartbeatMonitor::Change::Resumed)
    note_of_first(format("{} is heard of again", place_text(place(0))));
  if (why.empty()) return;
  is_reading_ = false;
  fail({.who = place(0), .doing = doing_of_first_, .why = why});
}

// What is left over from callers goes first.
void CoordinationClient::send_heartbeat(Time now) {
  const Lock lock(mutex_);
  if (sent_all_ || !is_reading_) return;
  if (wants_out_) {
    try {
      wants_out_ = !connection_->flush();
    } catch (const Error&) {
      wants_out_ = false;  // receive() finds the same
    }
  }
  if (now < next_heartbeat_ || is_ended()) return;
  next_heartbeat_ = now + options_.heartbeat;
  send(HeartbeatMessage{cut(activity_.text())});
}

void CoordinationClient::check_heartbeats(Time now) {
  const std::chrono::nanoseconds awake = awake_.at(now);
  {
    const Lock lock(mutex_);
    // The first rank need not watch itself.
    if (is_ended() || !is_reading_ || rank() == 0) return;
  }
  const std::string time = seconds_text(heartbeat_monitor_.since_received(awake));
  const HeartbeatMonitor::Change change = heartbeat_monitor_.look(awake);
  if (change == HeartbeatMonitor::Change::Late)
    note_of_first(format("{} has been silent for {}; it was doing: {}", place_text(place(0)), time,
                         doing_of_first_));
  if (change == HeartbeatMonitor::Change::Lost)
    fail({.who = place(0),
          .doing = doing_of_first_,
          .why = format("it has been silent for {}", time)});
}

void CoordinationClient::take(CoordinationMessage message) {
  if (auto* heartbeat = std::get_if<HeartbeatMessage>(&message)) {
    doing_of_first_ = std::move(heartbeat->doing);
  } else if (const auto* log = std::get_if<LogMessage>(&message)) {
    options_.log(log->text);
  } else if (const auto* failed = std::get_if<FailedMessage>(&message)) {
    fail(failed->failure);
  } else if (std::holds_alternative<AllFinishedMessage>(message)) {
    const Lock lock(mutex_);
    is_finished_ = true;
    changed_.notify_all();
    for (auto& [request, waiter] : waiters_) waiter->answered.notify_one();
  } else {
    std::visit(
        [&](auto& each) {
          if constexpr (requires { each.request; }) answer(each.request, std::move(each));
        },
        message);
  }
}

void CoordinationClient::answer(uint64_t request, CoordinationMessage message) {
  const Lock lock(mutex_);
  const auto found = waiters_.find(request);
  if (found == waiters_.end()) return;  // it waits no longer
  found->second->answer = std::make_unique<CoordinationMessage>(std::move(message));
  found->second->answered.notify_one();
}

void CoordinationClient::fail(const Failure& failure) {
  bool is_own = false;
  {
    const Lock lock(mutex_);
    if (has_failed_ || is_finished_) return;
    has_failed_ = true;
    is_own = has_abandoned_ && failure.who.rank == rank();
  }
  // Those who wait are let go afterwards: a process that ends here says one thing.
  if (!is_own && options_.on_failure) options_.on_failure(failure);
  const Lock lock(mutex_);
  failure_ = failure;
  changed_.notify_all();
  for (auto& [request, waiter] : waiters_) waiter->answered.notify_one();
}

// After the end, good or bad, nothing more is sent, so that the server can close too.
void CoordinationClient::close_sending() {
  const Lock lock(mutex_);
  if (!is_ended() || sent_all_ || wants_out_) return;
  sent_all_ = true;
  connection_->close_sending();
}

}  // namespace bev
