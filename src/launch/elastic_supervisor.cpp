#include "launch/elastic_supervisor.h"

#include <algorithm>
#include <csignal>
#include <numeric>

#include "base/check.h"
#include "base/clock.h"
#include "launch/node_client.h"
#include "launch/node_server.h"
#include "launch/restart_policy.h"
#include "net/address.h"

namespace bev {

namespace {

NodeHello hello_of(const LaunchJob& job, const ElasticJob& elastic) {
  return {.number = elastic.number,
          .processes = job.local_size,
          .least = elastic.least,
          .most = elastic.most,
          .host = host_name(),
          .job = job.job};
}

// The launcher of the first machine.
class FirstNode {
 public:
  FirstNode(const LaunchJob& job, const ElasticJob& elastic, const LaunchNote& note)
      : job_(job),
        elastic_(elastic),
        note_(note),
        server_({.host = job.master_host,
                 .port = job.master_port + 1,
                 .secret = job.secret,
                 .own = hello_of(job, elastic),
                 .note = note}) {}

  int run() {
    try {
      for (int number = 0;; ++number) {
        if (const auto over = gather(number)) return end_job(*over);
        const AttemptEnd end = attempt(number);
        if (end.code == 0 || end.asked_by != 0)
          return end_job({.code = end.code,
                          .words = end.code == 0 ? "the job is done"
                                                 : format("ended by {} at the first machine",
                                                          signal_name(end.asked_by))});
        const RestartPolicy::Verdict verdict = policy_->after(end);
        const int left = 1 + static_cast<int>(server_.waiting().size());
        const std::string words = format("{}\n  {}{}", end.report, here_text(left), verdict.words);
        if (!verdict.again) return end_job({.code = end.code, .words = words});
        notify_nodes(words);
        if (const int signal = pause(signals_, verdict.wait, &server_))
          return end_job(by_signal(signal));
      }
    } catch (const Error& error) {
      server_.end_job({.code = exit_code(error.kind),
                       .words = format("the first machine cannot continue: {}", error.what())});
      throw;
    }
  }

 private:
  static NodeJobEnd by_signal(int signal) {
    return {.code = 128 + signal,
            .words = format("ended by {} at the first machine", signal_name(signal))};
  }

  int end_job(const NodeJobEnd& over) {
    if (over.code != 0) note_(over.words);
    server_.end_job(over);
    return over.code;
  }

  void notify_nodes(const std::string& text) {
    note_(text);
    server_.notify(text);
  }

  std::string count_text(int machines) const {
    return format("{} of {} machines", machines, elastic_.most);
  }
  std::string here_text(int present) const {
    return format("{} {} here", count_text(present), present == 1 ? "is" : "are");
  }

  // Waits for machines until places_ is filled. Something: the job is over.
  std::optional<NodeJobEnd> gather(int number) {
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
        if (choose(others, number)) return std::nullopt;
        if (present >= elastic_.most)
          return NodeJobEnd{.code = exit_code(ErrorKind::Usage),
                            .words = format("{}, and no number of them from {} on can do "
                                            "it: {}",
                                            here_text(present), elastic_.least, refusal_)};
        call.refuse(present);
        note_(
            format("{}, which cannot do it; waiting for others: {}", here_text(present), refusal_));
      } else if (call.is_last_call() && !was_last_call) {
        notify_nodes(format("{}; others have {} s to come", here_text(present),
                            in_seconds(elastic_.last_call)));
      } else if (present < elastic_.least && noted != present) {
        note_(format("{}; waiting for at least {}", here_text(present), elastic_.least));
      }
      noted = present;
      if (const int signal = wait_once(signals_, &server_, 100)) return by_signal(signal);
    }
  }

  // Whether some of them can; who takes part then, and what people read.
  bool choose(const std::vector<NodeHello>& others, int number) {
    std::vector<int> processes{job_.local_size};
    for (const NodeHello& other : others)
      if (static_cast<int>(processes.size()) < elastic_.most) processes.push_back(other.processes);
    const NodeChoice choice = elastic_.choose(processes);
    refusal_ = choice.why;
    if (choice.nodes == 0) return false;
    const auto count = static_cast<size_t>(choice.nodes);
    job_.size = std::accumulate(processes.begin(), processes.begin() + choice.nodes, 0);
    places_.clear();
    int first_rank = job_.local_size;
    for (size_t node = 1; node < count; ++node) {
      places_[others[node - 1].number] = {.node = static_cast<int>(node),
                                          .nodes = choice.nodes,
                                          .first_rank = first_rank,
                                          .ranks = job_.size,
                                          .restart = number};
      first_rank += processes[node];
    }
    if (!policy_) {
      job_.progress = choice.progress;
      policy_.emplace(job_);
    }
    notify_nodes(start_words(others, count, choice.data_ranks, number));
    data_ranks_ = choice.data_ranks;
    return true;
  }

  std::string start_words(const std::vector<NodeHello>& others, size_t count, int data_ranks,
                          int number) const {
    std::string text =
        format("{}: {} take part, {} ranks", number == 0 ? "start" : format("restart {}", number),
               count_text(static_cast<int>(count)), job_.size);
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

  // Ranks of all machines, until all have ended.
  AttemptEnd attempt(int number) {
    server_.start(places_);
    AttemptEnd end = Attempt(job_, number, signals_, note_, &server_).run();
    if (end.code != 0) server_.stop("a rank of the first machine has failed");
    const double patience = in_seconds(job_.until_asked) + in_seconds(job_.until_killed) + 10;
    std::optional<double> until;
    while (!server_.all_ended()) {
      if (const int signal = wait_once(signals_, &server_, 100)) end.asked_by = signal;
      const bool has_failed = end.code != 0 || !server_.end_wanted().empty() || end.asked_by != 0;
      if (has_failed && !until) until = seconds_now() + patience;
      if (until && seconds_now() >= *until) server_.drop_unresponsive();
    }
    return of_all(std::move(end));
  }

  // What ended the attempt: a failure of its own, here or elsewhere; else a machine that is gone;
  // else what the ranks here say.
  AttemptEnd of_all(AttemptEnd end) const {
    const int let_down = exit_code(ErrorKind::Comm);
    const auto is_cause = [&](int code, const std::string& words) {
      return code != 0 && !words.empty() && !(job_.is_own_program && code == let_down);
    };
    const bool is_own = is_cause(end.code, end.words);
    bool is_found = is_own;
    for (const auto& [number, other] : server_.ends()) {
      if (other.code == 0 || other.words.empty()) continue;
      const bool is_gone = other.words.starts_with(server_.name_of(number));
      const std::string words =
          is_gone ? other.words : format("{}: {}", server_.name_of(number), other.words);
      end.report += (end.report.empty() ? "" : "\n  ") + words;
      if (is_found || (!is_cause(other.code, other.words) && !is_gone)) continue;
      is_found = is_cause(other.code, other.words);
      end.code = other.code;
      end.words = words;
      end.by_people = other.by_people;
    }
    for (const auto& [number, other] : server_.ends())
      if (end.code == 0) end.code = other.code;
    return end;
  }

  LaunchJob job_;
  const ElasticJob& elastic_;
  const LaunchNote& note_;
  SignalQueue signals_;
  NodeServer server_;
  std::optional<RestartPolicy> policy_;
  std::map<int, NodeAssignment> places_;
  int data_ranks_ = 0;  // of the last attempt
  std::string refusal_;
};

int supervise_other_node(LaunchJob job, const ElasticJob& elastic, const LaunchNote& note) {
  SignalQueue signals;
  NodeClient client;
  if (const int signal = client.join({.host = job.master_host,
                                      .port = job.master_port + 1,
                                      .secret = job.secret,
                                      .hello = hello_of(job, elastic),
                                      .limit = elastic.join_timeout,
                                      .note = note},
                                     signals))
    return 128 + signal;
  for (;;) {
    if (const int signal = wait_once(signals, &client, 1000)) return 128 + signal;
    if (client.over()) {
      if (client.over()->code != 0) note(client.over()->words);
      return client.over()->code;
    }
    const std::optional<NodeAssignment> place = client.take_place();
    if (!place) continue;
    job.node = place->node;
    job.first_rank = place->first_rank;
    job.size = place->ranks;
    const AttemptEnd end = Attempt(job, place->restart, signals, note, &client).run();
    if (!end.report.empty()) note(end.report);
    client.report(
        {.code = end.code, .by_people = end.by_people, .seconds = end.seconds, .words = end.words});
    if (end.code != 0 && end.asked_by != 0) {
      note(format("ended by {}; the other machines go on", signal_name(end.asked_by)));
      return end.code;
    }
  }
}

}  // namespace

int supervise_elastic(const LaunchJob& job, const ElasticJob& elastic, const LaunchNote& note) {
  BEV_CHECK(job.outputs.size() == static_cast<size_t>(job.local_size), Internal,
            "{} outputs for {} ranks", job.outputs.size(), job.local_size);
  return elastic.number == 0 ? FirstNode(job, elastic, note).run()
                             : supervise_other_node(job, elastic, note);
}

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

}  // namespace bev
