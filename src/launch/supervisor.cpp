#include "launch/supervisor.h"

#include "base/check.h"
#include "launch/restart_policy.h"
#include "net/socket.h"

namespace bev {

int supervise(const LaunchJob& job, const LaunchNote& note) {
  BEV_CHECK(job.outputs.size() == static_cast<size_t>(job.local_size), Internal,
            "{} outputs for {} ranks", job.outputs.size(), job.local_size);
  SignalQueue signals;
  RestartPolicy policy(job);
  for (int number = 0;; ++number) {
    const AttemptEnd end = Attempt(job, number, signals, note).run();
    if (end.code == 0 || end.asked_by != 0) {
      if (end.code != 0) note("ended by " + signal_name(end.asked_by));
      return end.code;
    }
    const RestartPolicy::Verdict verdict = policy.after(end);
    note(end.report + verdict.words);
    if (!verdict.again) return end.code;
    if (const int signal = pause(signals, verdict.wait)) return 128 + signal;
  }
}

int free_port() { return ListenPort("127.0.0.1", 0).port(); }

}  // namespace bev
