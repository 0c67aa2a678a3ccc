#include "coordination/coordination_client.h"

#include <algorithm>

#include "base/check.h"
#include "coordination/coordination_messages.h"
#include "coordination/coordination_server.h"
#include "coordination/rank_text.h"
#include "coordination/rendezvous.h"
#include "net/address.h"
#include "net/secure_link.h"

namespace bev {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long abort() waits for the server to announce this rank's failure.
constexpr milliseconds kAbandonLimit{2000};

// How long ask() waits for an answer. The server's own limit passes first, and its error names the
// missing ranks; this one is for a server that does not answer.
milliseconds patience(const CoordinationClient::Options& options) {
  return options.limit + std::max(4 * options.heartbeat, milliseconds(2000));
}

// How long fail_with() waits for the server to report a lost rank as the cause.
milliseconds moment(const CoordinationClient::Options& options) {
  return std::clamp(2 * options.heartbeat, milliseconds(500), milliseconds(3000));
}

}  // namespace

CoordinationClient::CoordinationClient(Options options)
    : options_(std::move(options)),
      next_exchange_(kFirstExchange),
      awake_(2 * options_.heartbeat),
      heartbeat_monitor_(options_.heartbeat_timeout, options_.limit,
                         awake_.at(steady_clock::now())) {
  BEV_CHECK(options_.size >= 1 && options_.rank >= 0 && options_.rank < options_.size, Internal,
            "there is no rank {} among {} ranks", options_.rank, options_.size);
  BEV_CHECK(!options_.secret.empty(), Internal, "a job without a secret");
  BEV_CHECK(options_.job.size() <= kJobMost, Internal, "the text of the job has {} bytes",
            options_.job.size());
  BEV_CHECK(options_.listener.has_value() == (options_.rank == 0), Internal,
            "the first rank listens, and no other");
  BEV_CHECK(options_.heartbeat.count() > 0, Internal, "a heartbeat of {} ms",
            options_.heartbeat.count());
  if (!options_.log) options_.log = [](const std::string&) {};
  join();
  heartbeat_monitor_.received(awake_.at(steady_clock::now()));
  thread_ = std::thread([this] { watch(); });
}

void CoordinationClient::join() {
  if (options_.rank == 0) {
    Socket listener(options_.listener->release());
    const Address here = address_here(listener.get());
    options_.host = here.host();
    options_.port = here.port();
    server_ = std::make_unique<CoordinationServer>(std::move(listener), options_, activity_);
  }
  JoinedJob job = join_job(options_);
  connection_ = std::move(job.connection);
  places_ = std::move(job.places);
  early_messages_ = std::move(job.messages);
}

CoordinationClient::~CoordinationClient() {
  bool is_ended_well = false;
  {
    const Lock lock(mutex_);
    is_ended_well = is_ended() || has_abandoned_ || has_finished_;
  }
  if (!is_ended_well) abort("it left before its work was done");
  {
    const Lock lock(mutex_);
    is_stopping_ = true;
  }
  wake_.raise();
  thread_.join();
  // The server waits for its ranks to close.
  connection_.reset();
}

void CoordinationClient::note_of_first(const std::string& text) const {
  if (rank() == 1 && options_.note_of_first) return options_.note_of_first(text);
  options_.log(text);
}

const RankIdentity& CoordinationClient::place(int rank) const {
  BEV_CHECK(rank >= 0 && rank < size(), Internal, "there is no rank {} among {} ranks", rank,
            size());
  return places_[static_cast<size_t>(rank)];
}

void CoordinationClient::send(const CoordinationMessage& message) {
  connection_->send(parcel_of(message));
  try {
    if (connection_->flush() || wants_out_) return;
    wants_out_ = true;
    wake_.raise();
  } catch (const Error&) {
    wants_out_ = false;  // the watching thread finds the error, after it has read the pending input
  }
}

CoordinationMessage CoordinationClient::ask(Lock& lock, uint64_t request,
                                            const CoordinationMessage& message) {
  const auto require_job = [&] {
    if (failure_) throw Error(ErrorKind::Comm, failure_->text());
    BEV_CHECK(!is_finished_ && !has_abandoned_, Internal, "rank {} asks after its end", rank());
  };
  require_job();
  Waiter waiter;
  waiters_.emplace(request, &waiter);
  send(message);
  waiter.answered.wait_for(lock, patience(options_),
                           [&] { return waiter.answer != nullptr || is_ended(); });
  waiters_.erase(request);
  if (waiter.answer == nullptr) {
    require_job();
    throw Error(ErrorKind::Comm, format("the first rank has not answered rank {} within {}", rank(),
                                        seconds_text(patience(options_))));
  }
  if (const auto* denied = std::get_if<ErrorReply>(waiter.answer.get()))
    throw Error(denied->is_bug ? ErrorKind::Internal : ErrorKind::Comm, denied->why);
  return std::move(*waiter.answer);
}

std::vector<std::string> CoordinationClient::all_gather(const std::string& here) {
  BEV_CHECK(here.size() <= kExchangeMost, Internal,
            "rank {} exchanges {} bytes; all ranks together may have {}", rank(), here.size(),
            kExchangeMost);
  Lock lock(mutex_);
  const uint64_t request = next_exchange_++;
  const auto answer = std::get<AllGatherReply>(
      ask(lock, request, AllGatherMessage{.request = request, .value = here}));
  lock.unlock();
  BEV_CHECK(answer.of_rank.size() == static_cast<size_t>(size()), Comm,
            "an exchange of {} ranks, not {}", answer.of_rank.size(), size());
  std::vector<std::string> all;
  all.reserve(answer.of_rank.size());
  for (const uint32_t value : answer.of_rank) all.push_back(answer.values[value]);
  return all;
}

uint32_t CoordinationClient::number_of_group(std::span<const int> ranks) {
  const std::vector<int> key(ranks.begin(), ranks.end());
  const auto [group, is_new] = groups_.emplace(key, static_cast<uint32_t>(groups_.size()));
  if (is_new) send(GroupMessage{{key.begin(), key.end()}});
  return group->second;
}

int64_t CoordinationClient::all_reduce_max(std::span<const int> ranks, int64_t here) {
  const bool ascends =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  BEV_CHECK(ascends && std::binary_search(ranks.begin(), ranks.end(), rank()) &&
                ranks.front() >= 0 && ranks.back() < size(),
            Internal, "rank {} meets ranks that do not ascend, are none or leave it out", rank());
  if (ranks.size() == 1) return here;
  Lock lock(mutex_);
  const uint32_t group = number_of_group(ranks);
  const uint64_t request = next_request_++;
  return std::get<AllReduceMaxReply>(
             ask(lock, request,
                 AllReduceMaxMessage{.request = request, .group = group, .value = here}))
      .value;
}

void CoordinationClient::put(const std::string& key, const std::string& value) {
  BEV_CHECK(key.size() <= kKeyMost && value.size() <= kExchangeMost, Internal,
            "a key of {} bytes for a value of {}; legal are {} and {}", key.size(), value.size(),
            kKeyMost, kExchangeMost);
  Lock lock(mutex_);
  const uint64_t request = next_request_++;
  ask(lock, request, PutMessage{.request = request, .key = key, .value = value});
}

std::string CoordinationClient::get(const std::string& key) {
  BEV_CHECK(key.size() <= kKeyMost, Internal, "a key of {} bytes; {} are the most", key.size(),
            kKeyMost);
  Lock lock(mutex_);
  const uint64_t request = next_request_++;
  return std::get<GotMessage>(ask(lock, request, GetMessage{.request = request, .key = key})).value;
}

void CoordinationClient::report_times(const RankTimes& times) {
  const Lock lock(mutex_);
  if (!is_ended()) send(TimesMessage{times});
}

std::vector<RankTimes> CoordinationClient::times() const {
  BEV_CHECK(server_ != nullptr, Internal, "the times of all are known to the first rank only");
  return server_->times();
}

void CoordinationClient::abort(const std::string& why) {
  Lock lock(mutex_);
  if (is_ended() || has_abandoned_) return;
  has_abandoned_ = true;
  send(AbandonMessage{.why = cut(why), .doing = cut(activity_.text())});
  changed_.wait_for(lock, kAbandonLimit, [&] { return is_ended(); });
}

void CoordinationClient::fail_with(const std::string& what_happened) {
  {
    Lock lock(mutex_);
    changed_.wait_for(lock, moment(options_), [&] { return is_ended(); });
    if (failure_) throw Error(ErrorKind::Comm, format("{}: {}", what_happened, failure_->text()));
  }
  abort(what_happened);
  throw Error(ErrorKind::Comm, what_happened);
}

void CoordinationClient::finish() {
  Lock lock(mutex_);
  if (is_ended() || has_abandoned_) return;
  has_finished_ = true;
  send(FinishMessage{});
  changed_.wait_for(lock, options_.limit, [&] { return is_ended(); });
}

}  // namespace bev
