#include "launch/elastic_supervisor.h"

#include <algorithm>
#include <csignal>

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
                 .note = note}),
        rendezvous_(job_, elastic_, server_, note_) {}

  int run() {
    try {
      for (int number = 0;; ++number) {
        if (const auto over = rendezvous_.gather(number, signals_)) return end_job(*over);
        job_.size = rendezvous_.ranks();
        if (!policy_) {
          job_.progress = rendezvous_.progress();
          policy_.emplace(job_);
        }
        const AttemptEnd end = attempt(number);
        if (end.code == 0 || end.asked_by != 0)
          return end_job({.code = end.code,
                          .words = end.code == 0 ? "the job is done"
                                                 : format("ended by {} at the first machine",
                                                          signal_name(end.asked_by))});
        const RestartPolicy::Verdict verdict = policy_->after(end);
        const int left = 1 + static_cast<int>(server_.waiting().size());
        const std::string words =
            format("{}\n  {}{}", end.report, rendezvous_.here_text(left), verdict.words);
        if (!verdict.again) return end_job({.code = end.code, .words = words});
        rendezvous_.notify(words);
        if (const int signal = pause(signals_, verdict.wait, &server_))
          return end_job(ended_by_signal(signal));
      }
    } catch (const Error& error) {
      server_.end_job({.code = exit_code(error.kind),
                       .words = format("the first machine cannot continue: {}", error.what())});
      throw;
    }
  }

 private:
  int end_job(const NodeJobEnd& over) {
    if (over.code != 0) note_(over.words);
    server_.end_job(over);
    return over.code;
  }

  // Ranks of all machines, until all have ended.
  AttemptEnd attempt(int number) {
    server_.start(rendezvous_.places());
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
  ElasticRendezvous rendezvous_;
  std::optional<RestartPolicy> policy_;
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

}  // namespace bev
