// Whether ranks that have failed are started again, and what people read about it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/supervisor.h"

namespace bev {

class RestartPolicy {
 public:
  // Looks at what is there before the first attempt.
  explicit RestartPolicy(const LaunchJob& job);

  struct Verdict {
    bool again = false;
    LaunchJob::Duration wait{};
    // Lines, each with an end before it and none behind; empty where nobody asked for restarts.
    std::string words{};
  };

  // After an attempt that failed. Not again: when all restarts are used up; when the command itself
  // is wrong (exit codes 2, 126, 127); when so many attempts in a row as the job allows made no new
  // checkpoint, those aside that people ended by a signal; and of our own program, when numbers or
  // data (exit codes 6, 3) fail as they did before, with no new checkpoint since: another start
  // would do the same. The wait doubles with every attempt that made no new checkpoint.
  Verdict after(const AttemptEnd& end);

 private:
  std::string objection(const AttemptEnd& end, bool has_progress);
  std::string idle_words() const;
  std::string start_words(std::optional<int64_t> before) const;

  const LaunchJob& job_;
  LaunchJob::Duration backoff_;
  std::optional<int64_t> newest_;  // the checkpoint that the next attempt finds
  int restarts_ = 0;
  std::vector<std::string> idle_;  // the attempts since the last new checkpoint, a line each
  // The newest checkpoint when an attempt last ended with that code.
  std::map<int, std::optional<int64_t>> failed_at_;
};

}  // namespace bev
