#include "launch/restart_policy.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

namespace {

const int kUsage = exit_code(ErrorKind::Usage), kData = exit_code(ErrorKind::Data),
          kNumerics = exit_code(ErrorKind::Numerics);

bool is_wrong_command(int code) { return code == kUsage || code == 126 || code == 127; }

std::optional<int64_t> look(const ProgressWatch& progress) {
  return progress.newest ? progress.newest() : std::nullopt;
}

std::string iterations_text(int64_t count) {
  return format("{} iteration{}", count, count == 1 ? "" : "s");
}

}  // namespace

RestartPolicy::RestartPolicy(const LaunchJob& job)
    : job_(job), backoff_(job.first_backoff), newest_(look(job.progress)) {}

RestartPolicy::Verdict RestartPolicy::after(const AttemptEnd& end) {
  const std::optional<int64_t> before = newest_;
  newest_ = look(job_.progress);
  const bool has_progress = before && newest_ && *newest_ > *before;
  if (has_progress) {
    idle_.clear();
    backoff_ = job_.first_backoff;
  } else if (!end.by_people) {
    idle_.push_back(format("attempt {}: {}, after {}", restarts_,
                           end.words.empty() ? "its ranks were asked to end" : end.words,
                           as_duration(end.seconds)));
  }
  if (job_.max_restarts == 0) return {};
  const std::string no = objection(end, has_progress);
  if (!no.empty()) return {.words = "\n  not started again: " + no};
  ++restarts_;
  Verdict verdict{.again = true, .wait = backoff_};
  verdict.words =
      format("\n  all start again: restart {} of {} after {} s{}", restarts_, job_.max_restarts,
             static_cast<double>(backoff_.count()) / 1000, start_words(before));
  backoff_ = std::min(backoff_ * 2, job_.longest_backoff);
  return verdict;
}

std::string RestartPolicy::objection(const AttemptEnd& end, bool has_progress) {
  const int code = end.code;
  if (is_wrong_command(code)) return "the command itself is wrong";
  const bool is_known = code == kData || code == kNumerics;
  const auto same = failed_at_.find(code);
  const bool is_repeated = job_.is_own_program && is_known && same != failed_at_.end() &&
                           same->second == newest_ && !has_progress;
  // Data that fail now and then may be read in between; numbers are the same whoever interrupts.
  if (code != kData) failed_at_.erase(kData);
  failed_at_[code] = newest_;
  if (is_repeated)
    return format(
        "{} failed a second time{}, and would again; what the first rank says about it "
        "is above",
        code == kData ? "the data" : "the numbers",
        newest_ ? format(" with the newest checkpoint at iteration {}", *newest_) : "");
  if (restarts_ >= job_.max_restarts)
    return format("that was restart {} of {}", restarts_, job_.max_restarts);
  const bool is_idle = newest_ && job_.max_idle_restarts > 0 &&
                       static_cast<int>(idle_.size()) >= job_.max_idle_restarts;
  return is_idle ? idle_words() : "";
}

std::string RestartPolicy::idle_words() const {
  std::string text = format(
      "{} attempt{} in a row made no new checkpoint (--max-idle-restarts {}); {}", idle_.size(),
      idle_.size() == 1 ? "" : "s", job_.max_idle_restarts,
      *newest_ > 0 ? format("the newest in {} is of iteration {}", job_.progress.folder, *newest_)
                   : format("there is none in {}", job_.progress.folder));
  for (const std::string& attempt : idle_) text += "\n    " + attempt;
  text += format(
      "\n  look at what the ranks said{}; where each attempt lasted long, checkpoint.interval is "
      "longer than they live",
      job_.progress.logs.empty() ? "" : format(", above and in {}", job_.progress.logs));
  return text;
}

std::string RestartPolicy::start_words(std::optional<int64_t> before) const {
  if (!newest_) return "";
  const std::string from = *newest_ > 0 ? format("continuing from iteration {}", *newest_)
                                        : "from the start, as there is no checkpoint yet";
  return format(", {}; progress since the last start: {}", from,
                iterations_text(std::max<int64_t>(0, *newest_ - before.value_or(0))));
}

}  // namespace bev
