#include "coordination/coordination_client.h"

#include "coordination/member.h"

namespace bev {

Control::Control(Options options) : member_(std::make_unique<Member>(std::move(options))) {}
Control::~Control() = default;

int Control::rank() const { return member_->rank(); }
int Control::size() const { return member_->size(); }
const RankPlace& Control::place(int rank) const { return member_->place(rank); }

std::vector<std::string> Control::exchange(const std::string& here) {
  return member_->exchange(here);
}
int64_t Control::largest(std::span<const int> ranks, int64_t here) {
  return member_->largest(ranks, here);
}
void Control::put(const std::string& key, const std::string& value) { member_->put(key, value); }
std::string Control::get(const std::string& key) { return member_->get(key); }

Activity& Control::activity() { return member_->activity(); }
void Control::report_times(const RankTimes& times) { member_->report_times(times); }
std::vector<RankTimes> Control::times() const { return member_->times(); }

void Control::abandon(const std::string& why) { member_->abandon(why); }
void Control::blame(const std::string& what_happened) { member_->blame(what_happened); }
void Control::finish() { member_->finish(); }

}  // namespace bev
