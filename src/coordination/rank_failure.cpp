// Failed ranks: how the server finds one, by its connection or its heartbeat, and tells the others.
#include "base/format.h"
#include "coordination/job_state.h"
#include "coordination/rank_text.h"

namespace bev {

void JobState::received(int rank, Time now) {
  Member& it = member(rank);
  if (it.heartbeat.received(awake_.at(now)) == HeartbeatMonitor::Change::Resumed && !is_over())
    send_all(LogMessage{format("{} is heard of again", place_text(it.place))});
}

void JobState::lost(int rank, const std::string& why) {
  Member& it = member(rank);
  it.is_gone = true;
  if (!it.is_finished) declare(rank, it.doing, why);
}

void JobState::declare(int rank, const std::string& doing, const std::string& why) {
  if (is_over()) return;
  is_failed_ = true;
  const Parcel parcel =
      parcel_of(FailedMessage{{.who = member(rank).place, .doing = cut(doing), .why = cut(why)}});
  // Send to the failed rank and the first rank last. The failed rank may exit when it receives
  // this; the server runs in the process of the first rank, which then exits too.
  for (const Member& each : members_)
    if (!each.is_gone && each.place.rank != rank && each.place.rank != 0)
      send_(each.place.rank, parcel);
  if (rank != 0 && !member(rank).is_gone) send_(rank, parcel);
  if (!member(0).is_gone) send_(0, parcel);
}

void JobState::check_heartbeats(std::chrono::nanoseconds now) {
  for (Member& each : members_) {
    if (each.is_finished || each.is_gone) continue;
    const std::string time = seconds_text(each.heartbeat.since_received(now));
    const HeartbeatMonitor::Change change = each.heartbeat.look(now);
    if (change == HeartbeatMonitor::Change::Late)
      send_all(LogMessage{cut(format("{} has been silent for {}; it was doing: {}",
                                     place_text(each.place), time, each.doing))});
    if (change == HeartbeatMonitor::Change::Lost)
      return declare(each.place.rank, each.doing, format("it has been silent for {}", time));
  }
}

}  // namespace bev
