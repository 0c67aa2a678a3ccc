#include "coordination/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "base/check.h"
#include "coordination/rank_text.h"
#include "net/address.h"
#include "net/socket.h"

namespace bev {

RendezvousRoster::RendezvousRoster(int size, std::string job)
    : job_(std::move(job)), places_(static_cast<size_t>(size)) {}

std::string RendezvousRoster::objection(const HelloMessage& hello) const {
  if (hello.job != job_)
    return format("it belongs to the job '{}', this one is '{}'", hello.job, job_);
  if (hello.size != size())
    return format("it says that the job has {} ranks, this one has {}", hello.size, size());
  if (hello.rank < 0 || hello.rank >= size())
    return format("there is no rank {} among {} ranks", hello.rank, size());
  const RankIdentity& place = places_[static_cast<size_t>(hello.rank)];
  if (place.rank >= 0) return format("{} is already here", place_text(place));
  return "";
}

void RendezvousRoster::join(const HelloMessage& hello) {
  RankIdentity& place = places_.at(static_cast<size_t>(hello.rank));
  BEV_CHECK(place.rank < 0, Internal, "rank {} joins twice", hello.rank);
  place = {.rank = hello.rank, .host = hello.host, .pid = hello.pid};
  ++joined_;
}

void RendezvousRoster::leave(int rank) {
  RankIdentity& place = places_.at(static_cast<size_t>(rank));
  BEV_CHECK(place.rank >= 0, Internal, "rank {} leaves without being there", rank);
  place = {};
  --joined_;
}

std::string RendezvousRoster::missing_text() const {
  std::vector<int> missing;
  for (int rank = 0; rank < size(); ++rank)
    if (places_[static_cast<size_t>(rank)].rank < 0) missing.push_back(rank);
  return format("{} of {}", ranks_text(missing), size());
}

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstPause{20}, kLongestPause{1000};
constexpr milliseconds kFirstNote{2000}, kNextNote{10000};
// The server says who is missing when its own limit passes; it may have begun a little later.
constexpr milliseconds kGrace{2000};

class Joining {
 public:
  explicit Joining(const CoordinationClient::Options& options)
      : o_(options),
        there_(host_and_port(options.host, options.port)),
        deadline_(steady_clock::now() + options.join_limit) {}

  JoinedJob join() {
    milliseconds pause = kFirstPause;
    for (;;) {
      job_.connection =
          connect_securely(o_.host, o_.port, HmacKey(o_.secret), kMessageMost, deadline_,
                           format("rank {} cannot join at {}", o_.rank, there_), why_);
      if (job_.connection != nullptr && wait_for_all()) return std::move(job_);
      note_failure();
      const auto left = deadline_ - steady_clock::now();
      BEV_CHECK(left.count() > 0, Comm, "rank {} cannot reach the first rank at {} within {}: {}",
                o_.rank, there_, seconds_text(o_.join_limit), why_);
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, left));
      pause = std::min(2 * pause, kLongestPause);
    }
  }

 private:
  void note_failure() {
    const SteadyTime now = steady_clock::now();
    if (now < next_note_) return;
    next_note_ = now + kNextNote;
    o_.log(format("rank {} cannot reach the first rank at {} yet: {}", o_.rank, there_, why_));
  }

  void take(std::string bytes) {
    is_noticed_ = true;
    if (is_joined_) {
      job_.messages.push_back(std::move(bytes));
      return;
    }
    CoordinationMessage message = decode(bytes);
    if (const auto* refused = std::get_if<RefusedMessage>(&message)) {
      refusal_ = refused->why;
    } else if (auto* waiting = std::get_if<WaitingMessage>(&message)) {
      missing_ = std::move(waiting->missing);
    } else if (auto* joined = std::get_if<JoinedMessage>(&message)) {
      BEV_CHECK(joined->places.size() == static_cast<size_t>(o_.size), Comm,
                "the first rank says that the job has {} ranks", joined->places.size());
      job_.places = std::move(joined->places);
      is_joined_ = true;
    } else {
      throw Error(ErrorKind::Comm, "the first rank says what it cannot say now");
    }
  }

  // Whether all have joined. False: the server, perhaps beset by strangers, has closed the
  // connection without a word.
  bool wait_for_all() {
    job_.connection->send(parcel_of(HelloMessage{.rank = o_.rank,
                                                 .size = o_.size,
                                                 .job = o_.job,
                                                 .host = cut(o_.own_host),
                                                 .pid = ::getpid()}));
    const SteadyTime until = deadline_ + kGrace;
    for (;;) {
      bool is_closed = false;
      try {
        is_closed = job_.connection->exchange(until, [&](std::string bytes) {
          take(std::move(bytes));
        }) == Reading::Closed;
        why_ = "it closed the connection at once";
      } catch (const Error& error) {
        if (is_noticed_) throw;
        is_closed = true;
        why_ = error.what();
      }
      if (is_joined_) return true;
      BEV_CHECK(!refusal_, Comm, "rank {} is refused by the first rank at {}: {}", o_.rank, there_,
                *refusal_);
      BEV_CHECK(!is_closed || !is_noticed_, Comm,
                "the first rank at {} closed the connection before all had joined", there_);
      if (is_closed) return false;
      BEV_CHECK(steady_clock::now() < until, Comm, "rank {} has waited {} for {}", o_.rank,
                seconds_text(o_.join_limit), missing_.empty() ? "the other ranks" : missing_);
    }
  }

  const CoordinationClient::Options& o_;
  std::string there_;
  SteadyTime deadline_, next_note_ = steady_clock::now() + kFirstNote;
  std::string why_, missing_;
  JoinedJob job_;
  std::optional<std::string> refusal_;
  bool is_noticed_ = false;  // the server has said anything
  bool is_joined_ = false;
};

}  // namespace

JoinedJob join_job(const CoordinationClient::Options& options) { return Joining(options).join(); }

}  // namespace bev
