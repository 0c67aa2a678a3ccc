#include "coordination/coordination_client.h"

#include "coordination/member.h"

namespace bev {

CoordinationClient::CoordinationClient(Options options)
    : member_(std::make_unique<Member>(std::move(options))) {}
CoordinationClient::~CoordinationClient() = default;

int CoordinationClient::rank() const { return member_->rank(); }
int CoordinationClient::size() const { return member_->size(); }
const RankIdentity& CoordinationClient::place(int rank) const { return member_->place(rank); }

std::vector<std::string> CoordinationClient::all_gather(const std::string& here) {
  return member_->all_gather(here);
}
int64_t CoordinationClient::all_reduce_max(std::span<const int> ranks, int64_t here) {
  return member_->all_reduce_max(ranks, here);
}
void CoordinationClient::put(const std::string& key, const std::string& value) {
  member_->put(key, value);
}
std::string CoordinationClient::get(const std::string& key) { return member_->get(key); }

Activity& CoordinationClient::activity() { return member_->activity(); }
void CoordinationClient::report_times(const RankTimes& times) { member_->report_times(times); }
std::vector<RankTimes> CoordinationClient::times() const { return member_->times(); }

void CoordinationClient::abort(const std::string& why) { member_->abort(why); }
void CoordinationClient::fail_with(const std::string& what_happened) {
  member_->fail_with(what_happened);
}
void CoordinationClient::finish() { member_->finish(); }

}  // namespace bev
