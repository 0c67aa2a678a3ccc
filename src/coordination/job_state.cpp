#include "coordination/job_state.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/format.h"
#include "coordination/rank_text.h"

namespace bev {

namespace {

constexpr size_t kNamedMost = 8;      // ranks whose activity an error lists
constexpr size_t kGroupsMost = 4096;  // per rank

std::vector<int> first_ranks(size_t count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Longest step of AwakeClock: a longer one means that this process was suspended.
std::chrono::nanoseconds longest_step(const JobState::Limits& limits) {
  return 2 * limits.heartbeat;
}

}  // namespace

JobState::JobState(const std::vector<RankIdentity>& places, const Limits& limits,
                   std::function<void(int rank, Parcel parcel)> send)
    : limits_(limits),
      send_(std::move(send)),
      exchange_(first_ranks(places.size())),
      exchanged_(places.size()),
      keys_(kExchangeMost),
      awake_(longest_step(limits)),
      times_(places.size()) {
  const std::chrono::nanoseconds now = awake_.at(std::chrono::steady_clock::now());
  for (const RankIdentity& place : places)
    members_.push_back(
        {.place = place,
         .heartbeat = HeartbeatMonitor(limits.heartbeat_timeout, limits.limit, now)});
}

void JobState::send(int rank, const CoordinationMessage& message) {
  send_(rank, parcel_of(message));
}

// Sends to the first rank last: the server runs in its process, which may exit as soon as it
// receives the end of the job.
void JobState::send_all(const CoordinationMessage& message) {
  const Parcel parcel = parcel_of(message);
  for (size_t i = members_.size(); i-- > 0;)
    if (!members_[i].is_gone) send_(members_[i].place.rank, parcel);
}

void JobState::deny(const Barrier::Arrival& who, const std::string& why, bool is_bug) {
  send(who.rank, ErrorReply{.request = who.request, .is_bug = is_bug, .why = cut(why)});
}

void JobState::deny_all(Barrier& barrier, const std::string& why) {
  for (const Barrier::Arrival& each : barrier.disperse()) deny(each, why);
}

void JobState::take(int rank, CoordinationMessage message, Time now) {
  std::visit([&](auto& each) { take(rank, std::move(each), now); }, message);
}

template <class T>
void JobState::take(int rank, const T&, Time) {
  throw Error(ErrorKind::Comm, format("rank {} says what it cannot say now", rank));
}

void JobState::take(int rank, const GroupMessage& message, Time) {
  const auto size = static_cast<int32_t>(members_.size());
  const std::vector<int32_t>& ranks = message.ranks;
  BEV_CHECK(
      !ranks.empty() && ranks.front() >= 0 && ranks.back() < size &&
          std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end(),
      Comm, "rank {} names a group whose ranks do not ascend inside {}", rank, size);
  BEV_CHECK(member(rank).groups.size() < kGroupsMost, Comm, "rank {} names more than {} groups",
            rank, kGroupsMost);
  std::unique_ptr<Group>& group = groups_[ranks];
  if (group == nullptr) group = std::make_unique<Group>(Group{.barrier = Barrier(ranks)});
  member(rank).groups.push_back(group.get());
}

void JobState::take(int rank, const AllReduceMaxMessage& message, Time now) {
  BEV_CHECK(message.group < member(rank).groups.size(), Comm, "rank {} has no group {}", rank,
            message.group);
  Group& group = *member(rank).groups[message.group];
  if (!group.broken.empty()) return deny({rank, message.request}, group.broken);
  const bool first = !group.barrier.since();
  group.barrier.arrive(rank, message.request, now);
  group.largest = first ? message.value : std::max(group.largest, message.value);
  if (!group.barrier.is_complete()) return;
  for (const Barrier::Arrival& each : group.barrier.disperse())
    send(each.rank, AllReduceMaxReply{.request = each.request, .value = group.largest});
}

void JobState::take(int rank, AllGatherMessage message, Time now) {
  if (!exchange_broken_.empty()) return deny({rank, message.request}, exchange_broken_);
  BEV_CHECK(message.request >= kFirstExchange, Comm, "rank {} numbers an exchange wrongly", rank);
  exchange_.arrive(rank, message.request, now);
  exchanged_bytes_ += message.value.size();
  exchanged_[static_cast<size_t>(rank)] = std::move(message.value);
  if (exchanged_bytes_ > kExchangeMost) {
    exchange_broken_ = format("the ranks exchange more than {} bytes", kExchangeMost);
    deny_all(exchange_, exchange_broken_);
  } else if (exchange_.is_complete()) {
    end_exchange();
  }
}

void JobState::end_exchange() {
  const std::vector<Barrier::Arrival> all = exchange_.disperse();
  AllGatherReply answer{.request = all.front().request, .values = {}, .of_rank = {}};
  std::unordered_map<std::string_view, uint32_t> positions;
  for (const std::string& value : exchanged_) {
    const auto [place, is_new] =
        positions.emplace(value, static_cast<uint32_t>(answer.values.size()));
    if (is_new) answer.values.push_back(value);
    answer.of_rank.push_back(place->second);
  }
  send_all(answer);
  exchanged_.assign(members_.size(), {});
  exchanged_bytes_ = 0;
}

void JobState::take(int rank, PutMessage message, Time) {
  const std::string why = keys_.put(message.key, std::move(message.value));
  if (!why.empty()) return deny({rank, message.request}, why, true);
  send(rank, PutReply{.request = message.request});
  for (const KeyValueTable::Wait& wait : keys_.take_waits(message.key))
    send(wait.rank, GotMessage{.request = wait.request, .value = *keys_.find(message.key)});
}

void JobState::take(int rank, const GetMessage& message, Time now) {
  if (const std::string* value = keys_.find(message.key)) {
    send(rank, GotMessage{.request = message.request, .value = *value});
  } else {
    keys_.wait({.rank = rank, .request = message.request, .key = message.key, .since = now});
  }
}

void JobState::take(int rank, const TimesMessage& message, Time) {
  const std::lock_guard lock(times_mutex_);
  times_[static_cast<size_t>(rank)] = message.times;
}

void JobState::take(int rank, const AbandonMessage& message, Time) {
  declare(rank, message.doing, message.why);
}

void JobState::take(int rank, const FinishMessage&, Time) {
  member(rank).is_finished = true;
  member(rank).doing = "nothing: it has finished";
  const bool all = std::all_of(members_.begin(), members_.end(),
                               [](const Member& each) { return each.is_finished; });
  if (!all || is_over()) return;
  is_finished_ = true;
  send_all(AllFinishedMessage{});
}

void JobState::take(int rank, HeartbeatMessage message, Time) {
  if (!member(rank).is_finished) member(rank).doing = std::move(message.doing);
}

void JobState::tick(Time now, const std::string& doing) {
  const std::chrono::nanoseconds awake = awake_.at(now);
  if (is_over()) return;
  if (!next_heartbeat_ || now >= *next_heartbeat_) {
    next_heartbeat_ = now + limits_.heartbeat;
    send_all(HeartbeatMessage{cut(doing)});
  }
  check_heartbeats(awake);
  look_for_waits(now);
}

void JobState::look_for_waits(Time now) {
  const auto is_overdue = [&](const Barrier& barrier) {
    return barrier.since() && now - *barrier.since() >= limits_.limit;
  };
  for (auto& [ranks, group] : groups_) {
    if (!is_overdue(group->barrier)) continue;
    group->broken = overdue_text(group->barrier, "an agreement");
    deny_all(group->barrier, group->broken);
  }
  if (is_overdue(exchange_)) {
    exchange_broken_ = overdue_text(exchange_, "an exchange");
    deny_all(exchange_, exchange_broken_);
  }
  for (const KeyValueTable::Wait& wait : keys_.take_waits_since(now - limits_.limit))
    deny({wait.rank, wait.request},
         format("no rank has put key '{}' within {}", wait.key, seconds_text(limits_.limit)));
}

std::string JobState::overdue_text(const Barrier& barrier, const char* what) const {
  const std::vector<int> missing = barrier.missing();
  std::string text = format("{} among {} has waited {} for {}:", what, ranks_text(barrier.ranks()),
                            seconds_text(limits_.limit), ranks_text(missing));
  for (size_t i = 0; i < std::min(missing.size(), kNamedMost); ++i) {
    const Member& each = members_[static_cast<size_t>(missing[i])];
    text += format("{} {} was doing: {}", i == 0 ? "" : ";", place_text(each.place), each.doing);
  }
  if (missing.size() > kNamedMost) text += format("; and {} more", missing.size() - kNamedMost);
  return text;
}

std::vector<RankTimes> JobState::times() const {
  const std::lock_guard lock(times_mutex_);
  return times_;
}

Barrier::Barrier(std::vector<int> ranks) : ranks_(std::move(ranks)), requests_(ranks_.size()) {}

void Barrier::arrive(int rank, uint64_t request, Time now) {
  const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  BEV_CHECK(place != ranks_.end() && *place == rank, Comm,
            "rank {} comes to a meeting that it is no member of", rank);
  auto& mine = requests_[static_cast<size_t>(place - ranks_.begin())];
  BEV_CHECK(!mine, Comm, "rank {} comes twice to the same meeting", rank);
  mine = request;
  if (arrived_++ == 0) since_ = now;
}

std::optional<Barrier::Time> Barrier::since() const {
  return arrived_ > 0 ? std::optional(since_) : std::nullopt;
}

std::vector<int> Barrier::missing() const {
  std::vector<int> missing;
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (!requests_[i]) missing.push_back(ranks_[i]);
  return missing;
}

std::vector<Barrier::Arrival> Barrier::disperse() {
  std::vector<Arrival> all;
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (requests_[i]) all.push_back({ranks_[i], *requests_[i]});
  requests_.assign(ranks_.size(), std::nullopt);
  arrived_ = 0;
  return all;
}

namespace {

template <class Condition>
std::vector<KeyValueTable::Wait> take_if(std::vector<KeyValueTable::Wait>& waits,
                                         Condition condition) {
  const auto first =
      std::stable_partition(waits.begin(), waits.end(),
                            [&](const KeyValueTable::Wait& wait) { return !condition(wait); });
  std::vector<KeyValueTable::Wait> taken(std::make_move_iterator(first),
                                         std::make_move_iterator(waits.end()));
  waits.erase(first, waits.end());
  return taken;
}

}  // namespace

std::string KeyValueTable::put(const std::string& key, std::string value) {
  if (const std::string* old = find(key))
    return *old == value ? "" : format("key '{}' already has another value", key);
  if (key.size() + value.size() > bytes_most_ - bytes_)
    return format("key '{}' with {} bytes is too much: all keys together may have {}", key,
                  value.size(), bytes_most_);
  bytes_ += key.size() + value.size();
  values_.emplace(key, std::move(value));
  return "";
}

const std::string* KeyValueTable::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::vector<KeyValueTable::Wait> KeyValueTable::take_waits(const std::string& key) {
  return take_if(waits_, [&](const Wait& wait) { return wait.key == key; });
}

std::vector<KeyValueTable::Wait> KeyValueTable::take_waits_since(Time before) {
  return take_if(waits_, [&](const Wait& wait) { return wait.since <= before; });
}

}  // namespace bev
