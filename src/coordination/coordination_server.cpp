#include "coordination/coordination_server.h"

#include <algorithm>
#include <exception>

#include "base/check.h"
#include "base/process.h"
#include "coordination/rank_text.h"

namespace bev {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstWaitNote{2000}, kNextWaitNote{10000};
constexpr milliseconds kFarewell{1000};
constexpr size_t kStrangersLeast = 256;

// Limit of connections that are not admitted yet: all ranks of a job may connect at once.
size_t strangers_most(int size) { return std::max(kStrangersLeast, static_cast<size_t>(size) * 2); }

}  // namespace

CoordinationServer::CoordinationServer(Socket listener, const CoordinationClient::Options& options,
                                       const Activity& activity)
    : PeerServer(std::move(listener), options.secret,
                 {.message_bytes = kMessageMost,
                  .strangers = strangers_most(options.size),
                  .tick = std::clamp(options.heartbeat / 2, milliseconds(5), milliseconds(500))},
                 options.log),
      options_(options),
      activity_(activity),
      roster_(options_.size, options_.job),
      ranks_(static_cast<size_t>(options_.size)),
      next_note_(started_ + kFirstWaitNote) {
  // Every connection takes a file descriptor.
  if (strangers_most(options_.size) + ranks_.size() > 512) raise_open_file_limit();
  thread_ = std::thread([this] { run(); });
}

CoordinationServer::~CoordinationServer() {
  stopped_ = true;
  wake();
  thread_.join();
}

void CoordinationServer::run() {
  try {
    while (!stopped_) serve(milliseconds(1000));
    farewell(kFarewell);
  } catch (const std::exception& error) {
    options_.log(format("the control server has failed: {}", error.what()));
    hang_up();
  }
}

std::vector<RankTimes> CoordinationServer::times() const {
  const std::lock_guard lock(job_state_mutex_);
  return job_state_ == nullptr ? std::vector<RankTimes>(ranks_.size()) : job_state_->times();
}

void CoordinationServer::take(Peer& peer, const std::string& bytes, Time now) {
  if (peer.number < 0) return greet(peer, decode(bytes));
  BEV_CHECK(job_state_ != nullptr, Comm, "it speaks before all have joined");
  job_state_->take(peer.number, decode(bytes), now);
}

void CoordinationServer::received(Peer& peer, Time now) {
  if (job_state_ != nullptr) job_state_->received(peer.number, now);
}

void CoordinationServer::greet(Peer& peer, const CoordinationMessage& message) {
  const auto* hello = std::get_if<HelloMessage>(&message);
  BEV_CHECK(hello != nullptr, Comm, "it does not say which rank it is");
  std::string why = roster_.objection(*hello);
  if (job_state_ != nullptr && hello->job == options_.job)
    why = "this job is complete: all its ranks have joined";
  if (why.empty() && gave_up_) why = "the others have given up waiting";
  if (!why.empty()) return refuse(peer, cut(why), parcel_of(RefusedMessage{cut(why)}));
  roster_.join(*hello);
  let_in(peer, hello->rank);
  ranks_[static_cast<size_t>(hello->rank)] = &peer;
  if (roster_.is_complete()) {
    begin_job();
  } else {
    send(peer, parcel_of(WaitingMessage{cut(roster_.missing_text())}));
  }
}

void CoordinationServer::begin_job() {
  auto job =
      std::make_shared<JobState>(roster_.places(),
                                 JobState::Limits{.heartbeat = options_.heartbeat,
                                                  .heartbeat_timeout = options_.heartbeat_timeout,
                                                  .limit = options_.limit},
                                 [this](int rank, Parcel parcel) {
                                   if (Peer* peer = ranks_[static_cast<size_t>(rank)])
                                     send(*peer, std::move(parcel));
                                 });
  const Parcel joined = parcel_of(JoinedMessage{roster_.places()});
  for (Peer* peer : ranks_) send(*peer, joined);
  const std::lock_guard lock(job_state_mutex_);
  job_state_ = std::move(job);
}

void CoordinationServer::lost(const Peer& peer) {
  ranks_[static_cast<size_t>(peer.number)] = nullptr;
  if (job_state_ != nullptr) return job_state_->lost(peer.number, peer.broken);
  const RankIdentity place = roster_.places()[static_cast<size_t>(peer.number)];
  roster_.leave(peer.number);
  if (!gave_up_)
    options_.log(format("{} left before all had joined ({}); it may come again", place_text(place),
                        peer.broken));
}

void CoordinationServer::tick(Time now) {
  if (job_state_ != nullptr) return job_state_->tick(now, activity_.text());
  if (gave_up_) return;
  const std::string missing = roster_.missing_text();
  if (now - started_ >= options_.join_limit) {
    gave_up_ = true;
    const Parcel parcel = parcel_of(RefusedMessage{
        cut(format("{} did not join within {}", missing, seconds_text(options_.join_limit)))});
    for (size_t i = ranks_.size(); i-- > 0;)
      if (ranks_[i] != nullptr) send(*ranks_[i], parcel);
  } else if (now >= next_note_) {
    next_note_ = now + kNextWaitNote;
    options_.log(format("waiting for {}", missing));
    const Parcel parcel = parcel_of(WaitingMessage{cut(missing)});
    for (Peer* peer : ranks_)
      if (peer != nullptr) send(*peer, parcel);
  }
}

}  // namespace bev
