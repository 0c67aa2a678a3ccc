#include "launch/elastic_rendezvous.h"

#include <numeric>

#include "base/check.h"
#include "base/clock.h"
#include "launch/supervised_ranks.h"

namespace bev {

RendezvousWait::Verdict RendezvousWait::judge(int present, double now) {
  const bool is_late = now - started_ >= limits_.join;
  if (present < limits_.least || present == refused_) {
    called_ = -1;
    return is_late ? Verdict::TooFew : Verdict::Wait;
  }
  if (present >= limits_.most) return Verdict::Go;
  if (called_ < 0) called_ = now;
  return now - called_ >= limits_.last_call ? Verdict::Go : Verdict::Wait;
}

NodeJobEnd ended_by_signal(int signal) {
  return {.code = 128 + signal,
          .words = format("ended by {} at the first machine", signal_name(signal))};
}

void ElasticRendezvous::notify(const std::string& text) {
  note_(text);
  server_.notify(text);
}

std::string ElasticRendezvous::count_text(int machines) const {
  return format("{} of {} machines", machines, elastic_.most);
}
std::string ElasticRendezvous::here_text(int present) const {
  return format("{} {} here", count_text(present), present == 1 ? "is" : "are");
}

std::optional<NodeJobEnd> ElasticRendezvous::gather(int attempt, SignalQueue& signals) {
  RendezvousWait call({.least = elastic_.least,
                       .most = elastic_.most,
                       .last_call = in_seconds(elastic_.last_call),
                       .join = in_seconds(elastic_.join_timeout)},
                      seconds_now());
  int noted = 0;
  for (;;) {
    server_.look();
    const std::vector<NodeHello> others = server_.waiting();
    const int present = 1 + static_cast<int>(others.size());
    const bool was_last_call = call.is_last_call();
    const RendezvousWait::Verdict verdict = call.judge(present, seconds_now());
    if (verdict == RendezvousWait::Verdict::TooFew)
      return NodeJobEnd{
          .code = refusal_.empty() ? exit_code(ErrorKind::Comm) : exit_code(ErrorKind::Usage),
          .words = format("{} after {} s, where {}{}", here_text(present),
                          in_seconds(elastic_.join_timeout),
                          refusal_.empty() ? format("{} are needed", elastic_.least)
                                           : "no number of them can do it: ",
                          refusal_)};
    if (verdict == RendezvousWait::Verdict::Go) {
      if (choose(others, attempt)) return std::nullopt;
      if (present >= elastic_.most)
        return NodeJobEnd{.code = exit_code(ErrorKind::Usage),
                          .words = format("{}, and no number of them from {} on can do "
                                          "it: {}",
                                          here_text(present), elastic_.least, refusal_)};
      call.refuse(present);
      note_(format("{}, which cannot do it; waiting for others: {}", here_text(present), refusal_));
    } else if (call.is_last_call() && !was_last_call) {
      notify(format("{}; others have {} s to come", here_text(present),
                    in_seconds(elastic_.last_call)));
    } else if (present < elastic_.least && noted != present) {
      note_(format("{}; waiting for at least {}", here_text(present), elastic_.least));
    }
    noted = present;
    if (const int signal = wait_once(signals, &server_, 100)) return ended_by_signal(signal);
  }
}

bool ElasticRendezvous::choose(const std::vector<NodeHello>& others, int attempt) {
  std::vector<int> processes{job_.local_size};
  for (const NodeHello& other : others)
    if (static_cast<int>(processes.size()) < elastic_.most) processes.push_back(other.processes);
  const NodeChoice choice = elastic_.choose(processes);
  refusal_ = choice.why;
  if (choice.nodes == 0) return false;
  const auto count = static_cast<size_t>(choice.nodes);
  ranks_ = std::accumulate(processes.begin(), processes.begin() + choice.nodes, 0);
  places_.clear();
  int first_rank = job_.local_size;
  for (size_t node = 1; node < count; ++node) {
    places_[others[node - 1].number] = {.node = static_cast<int>(node),
                                        .nodes = choice.nodes,
                                        .first_rank = first_rank,
                                        .ranks = ranks_,
                                        .restart = attempt};
    first_rank += processes[node];
  }
  progress_ = choice.progress;
  notify(start_words(others, count, choice.data_ranks, attempt));
  data_ranks_ = choice.data_ranks;
  return true;
}

std::string ElasticRendezvous::start_words(const std::vector<NodeHello>& others, size_t count,
                                           int data_ranks, int attempt) const {
  std::string text =
      format("{}: {} take part, {} ranks", attempt == 0 ? "start" : format("restart {}", attempt),
             count_text(static_cast<int>(count)), ranks_);
  if (data_ranks > 0 && data_ranks_ > 0 && data_ranks != data_ranks_)
    text += format(", data-parallel {} -> {}", data_ranks_, data_ranks);
  else if (data_ranks > 0)
    text += format(", data-parallel {}", data_ranks);
  std::vector<std::string> spares;
  for (size_t i = count - 1; i < others.size(); ++i)
    spares.push_back(server_.name_of(others[i].number));
  if (!spares.empty()) text += format("; in reserve: {}", fmt::join(spares, ", "));
  return text;
}

}  // namespace bev
