#include "report/status_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "base/format.h"

namespace bev::app {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 9> kStates{"starting", "training", "evaluating",
                                                  "saving",   "ended",    "failed",
                                                  "crashed",  "silent",   "unknown"};
// Several times what lies between two signs of life; network file systems show files late.
constexpr double kSilentSeconds = 30, kSilentElsewhere = 90;
// An iteration takes much longer than usual from this multiple on, and not below these seconds.
constexpr double kStuckTimes = 10, kStuckSeconds = 30, kFirstSeconds = 600;
// Clocks of machines differ by less.
constexpr double kClockSeconds = 60;

RunState state_of(const RunInfo& facts, double now) {
  if (!facts.status) return RunState::Unknown;
  const RunStatus& s = *facts.status;
  if (s.phase == RunPhase::Ended) return RunState::Ended;
  if (s.phase == RunPhase::Failed) return RunState::Failed;
  if (facts.life == ProcessState::Gone) return RunState::Crashed;
  const double limit = facts.life == ProcessState::Alive ? kSilentSeconds : kSilentElsewhere;
  if (now - s.updated > limit) return RunState::Silent;
  return static_cast<RunState>(s.phase);
}

// Time that has passed, as people say it: parts of a second mean nothing here.
std::string passed(double since, double now) {
  if (since <= 0) return "an unknown time";
  const double seconds = std::max(0.0, now - since);
  return seconds < 60 ? format("{:.0f} s", std::floor(seconds)) : as_duration(seconds);
}

std::string ago(double since, double now) { return passed(since, now) + " ago"; }

std::string pace_text(double seconds) {
  return seconds < 1 ? format("{:.1f} ms", 1e3 * seconds) : as_duration(seconds);
}

// In the time zone of whoever asks.
std::string clock_text(double time, const char* how) {
  const auto seconds = static_cast<std::time_t>(std::min(time, 1e11));
  std::tm parts{};
  std::array<char, 64> text{};
  if (::localtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text.data(), text.size(), how, &parts) == 0)
    return format("{:.0f} s after 1970", time);
  return text.data();
}

std::string day_and_time(double time) { return clock_text(time, "%a %d %b %H:%M"); }

// As a shell reads it.
std::string in_shell(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:@%,=";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The words of one run, which state and rows share.
class Words {
 public:
  Words(const RunInfo& facts, double now)
      : facts_(facts),
        now_(now),
        state_(state_of(facts, now)),
        status_(facts.status.value_or(RunStatus{})) {
    take_metrics();
  }

  RunState state() const { return state_; }
  bool is_live() const { return state_ <= RunState::Saving; }

  // "iteration 1,200 of 10,000 (12.0 %)"
  std::string position() const {
    const std::string of =
        status_.iterations > 0 ? format(" of {}", with_commas(status_.iterations)) : "";
    if (status_.iteration == 0) return format("before the first iteration{}", of);
    if (status_.iterations == 0) return format("iteration {}", with_commas(status_.iteration));
    return format(
        "iteration {}{} ({:.1f} %)", with_commas(status_.iteration), of,
        100 * static_cast<double>(status_.iteration) / static_cast<double>(status_.iterations));
  }

  std::string state_text() const {
    const std::string idle = passed(status_.updated, now_);
    const std::string phase = status_.phase == RunPhase::Starting ? "" : format(", {}", position());
    switch (state_) {
      case RunState::Starting: return format("starting, for {}", passed(status_.phase_since, now_));
      case RunState::Training: return format("training, {}", position());
      case RunState::Evaluating:
      case RunState::Saving:
        return format("{} for {}, after {}", name_of(state_), passed(status_.phase_since, now_),
                      position());
      case RunState::Ended:
        return status_.ending == kComplete
                   ? format("ended: complete, {} iterations", with_commas(status_.iteration))
                   : format("ended: {}, after {}", status_.ending, position());
      case RunState::Failed:
        return format("failed: {} (exit code {}), after {}", status_.ending, status_.exit_code,
                      position());
      case RunState::Crashed:
        return format("crashed: its process no longer exists, last seen {} ago {}{}", idle,
                      name_of(status_.phase), phase);
      case RunState::Silent:
        if (facts_.life == ProcessState::Alive)
          return format(
              "no status update for {}, though its process is there: stopped, or waiting for the "
              "disk; "
              "last seen {}{}",
              idle, name_of(status_.phase), phase);
        return format("on host {}, no status update for {}, last seen {}{}", status_.host, idle,
                      name_of(status_.phase), phase);
      case RunState::Unknown: break;
    }
    if (status_.iteration == 0)
      return facts_.saved
                 ? format("not known; iteration {} was saved {}",
                          with_commas(facts_.saved->iteration), ago(facts_.saved->time, now_))
                 : "not known";
    return format("not known; {} was logged {}", position(), ago(facts_.metrics->written, now_));
  }

  // " (lm 2.1031, sop 0.6931)"; empty for a single loss, which is the sum.
  static std::string by_name(const std::vector<NamedLoss>& losses) {
    if (losses.size() < 2) return {};
    std::string text;
    for (const NamedLoss& loss : losses)
      text += format("{}{} {:.4f}", text.empty() ? " (" : ", ", loss.name, loss.mean);
    return text + ")";
  }

  std::string loss() const {
    std::string text = status_.loss ? format("{:.4f}", *status_.loss) : "";
    text += by_name(status_.losses);
    add(text, status_.valid_loss, "validation {:.4f}");
    text += by_name(status_.valid_losses);
    add(text, status_.grad_norm, "gradient norm {:.3f}");
    return text;
  }

  std::string learning_rate() const {
    if (!status_.learning_rate) return {};
    std::string text = format("{:.3E}", *status_.learning_rate);
    if (status_.rate_factor != 1)
      text += format(", {:g} times the schedule (control/lr)", status_.rate_factor);
    return text;
  }

  std::string speed() const {
    std::string text;
    if (status_.tokens_per_second)
      text = format("{} tokens/s", with_commas(whole(*status_.tokens_per_second)));
    if (status_.seconds_per_iteration)
      add_word(text, format("{} per iteration", pace_text(*status_.seconds_per_iteration)));
    if (!status_.slowest.empty()) add_word(text, format("slowest rank {}", status_.slowest));
    return text;
  }

  // When it will be done, in seconds since 1970.
  std::optional<double> end_time() const {
    if (!is_live() || !status_.seconds_left || *status_.seconds_left < 0) return std::nullopt;
    return status_.updated + std::min(*status_.seconds_left, 1e11);
  }
  std::string left() const {
    const std::optional<double> end = end_time();
    if (!end) return {};
    return format("{}, done {}", passed(now_, *end), day_and_time(*end));
  }

  std::string checkpoint() const {
    if (facts_.saved)
      return format("iteration {}, {}, {}", with_commas(facts_.saved->iteration),
                    ago(facts_.saved->time, now_), facts_.saved->path.string());
    if (status_.checkpoint.empty()) return "none";
    return format("iteration {}, {}, was saved as {}, and is not there now",
                  with_commas(status_.checkpoint_iteration), ago(status_.checkpoint_time, now_),
                  status_.checkpoint);
  }

  // How long this iteration has taken, where that is much more than usual; by the clock of the run.
  std::optional<double> stuck_seconds() const {
    if (state_ != RunState::Training || status_.iteration_time == 0) return std::nullopt;
    const double taken = status_.updated - std::max(status_.iteration_time, status_.phase_since);
    const double limit = status_.seconds_per_iteration
                             ? std::max(kStuckSeconds, kStuckTimes * *status_.seconds_per_iteration)
                             : kFirstSeconds;
    return taken > limit ? std::optional(taken) : std::nullopt;
  }

  std::string health() const {
    if (!facts_.status) return {};
    std::string text;
    if (const std::optional<double> taken = stuck_seconds())
      add_part(text,
               format("stuck? iteration {} has taken {} so far, usual is {}",
                      with_commas(status_.iteration + 1), passed(now_ - *taken, now_),
                      status_.seconds_per_iteration ? pace_text(*status_.seconds_per_iteration)
                                                    : "not known"));
    if (!status_.save_failure.empty())
      add_part(text, format("the last save failed: {}", status_.save_failure));
    if (status_.skipped > 0) add_part(text, counted(status_.skipped, "update", "skipped"));
    if (status_.spikes > 0) add_part(text, counted(status_.spikes, "spike"));
    if (status_.rollbacks > 0) add_part(text, counted(status_.rollbacks, "rollback"));
    const bool has_trouble = state_ == RunState::Failed || state_ == RunState::Crashed;
    if (text.empty())
      text = format("{}no update skipped, no spike, no rollback", has_trouble ? "" : "good: ");
    if (!status_.last_event.empty())
      add_part(text, format("last event: {}, {}", status_.last_event,
                            ago(status_.last_event_time, now_)));
    return text;
  }

  std::string memory() const {
    std::string text;
    if (status_.device_bytes > 0)
      text = format("{} of device memory", as_bytes(status_.device_bytes));
    if (status_.host_bytes > 0)
      add_word(text, format("{} of host memory", as_bytes(status_.host_bytes)));
    return text;
  }

  std::string ranks() const {
    if (!facts_.status) return facts_.has_config && facts_.ranks > 1 ? facts_.layout : "";
    std::string text = status_.layout.empty()
                           ? format("{} rank{}", status_.ranks, status_.ranks == 1 ? "" : "s")
                           : status_.layout;
    if (!status_.device.empty()) text += format("; {}", status_.device);
    return text;
  }

  std::string process() const {
    if (!facts_.status || status_.process.pid == 0) return {};
    std::string text = format("{} on {}", status_.process.pid, status_.host);
    if (!status_.program.empty()) text += format(", {}", status_.program);
    if (status_.started > 0)
      text += format(", started {}, {}", day_and_time(status_.started), ago(status_.started, now_));
    return text;
  }

  // The command that goes on where the run ended, or begins again.
  std::string next() const {
    const bool can_go_on = state_ == RunState::Failed || state_ == RunState::Crashed ||
                           (state_ == RunState::Ended && status_.ending != kComplete);
    if (!can_go_on || !facts_.has_config) return {};
    const std::string config = in_shell((facts_.folder / "config.toml").string());
    if (!facts_.saved) return format("bevatron train {}", config);
    const fs::path root = facts_.saved->path.parent_path();
    const bool is_inside = root == facts_.folder / "checkpoints";
    return format("bevatron train {} --load {}", config,
                  in_shell(is_inside ? facts_.folder.string() : root.string()));
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    if (!facts_.status_problem.empty())
      all.push_back(format("status.json is damaged: {}; the other files tell the above",
                           facts_.status_problem));
    else if (!facts_.status)
      all.emplace_back(
          "there is no status.json: the run is of an older version, or the file was deleted; the "
          "other files tell the above, but not whether it is going on");
    if (!facts_.metrics_problem.empty()) {
      all.push_back(facts_.metrics_problem);
    } else if (!facts_.metrics) {
      all.emplace_back("metrics.jsonl is missing, the record of all iterations");
    }
    if (!facts_.has_config)
      all.emplace_back("config.toml is missing: the run cannot be continued from it");
    if (!facts_.saved_problem.empty()) all.push_back(facts_.saved_problem);
    if (status_.updated > now_ + kClockSeconds)
      all.push_back(format("the clock of {} is {} ahead of this machine's, or this one is late",
                           status_.host, as_duration(status_.updated - now_)));
    return all;
  }

 private:
  // What the status does not say, or not yet: a process that was killed wrote its last iterations
  // into the record only.
  void take_metrics() {
    if (!facts_.metrics) return;
    const LastMetrics& m = *facts_.metrics;
    const bool is_newer = state_ == RunState::Crashed && m.iteration > status_.iteration;
    if (facts_.status && !is_newer) return;
    status_.iteration = m.iteration;
    if (status_.iterations == 0) status_.iterations = m.iterations;
    status_.samples = m.samples;
    status_.loss = m.loss;
    status_.losses = m.losses;
    status_.grad_norm = m.grad_norm;
    status_.learning_rate = m.learning_rate;
    if (facts_.status) return;
    status_.valid_loss = m.valid_loss;
    status_.valid_losses = m.valid_losses;
    status_.tokens_per_second = m.tokens_per_second;
    status_.seconds_per_iteration = m.seconds;
  }

  static int64_t whole(double value) { return static_cast<int64_t>(std::clamp(value, 0.0, 1e18)); }
  static void add_word(std::string& text, const std::string& word) {
    text += (text.empty() ? "" : ", ") + word;
  }
  static void add_part(std::string& text, const std::string& part) {
    text += (text.empty() ? "" : "; ") + part;
  }
  static void add(std::string& text, const std::optional<double>& value,
                  fmt::format_string<const double&> how) {
    if (value) add_word(text, format(how, *value));
  }
  static std::string counted(int64_t count, std::string_view what, std::string_view behind = "") {
    return format("{} {}{}{}{}", with_commas(count), what, count == 1 ? "" : "s",
                  behind.empty() ? "" : " ", behind);
  }

  const RunInfo& facts_;
  double now_;
  RunState state_;
  RunStatus status_;
};

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

std::string_view name_of(RunState state) { return kStates[static_cast<size_t>(state)]; }

bool is_over(RunState state) {
  return state == RunState::Ended || state == RunState::Failed || state == RunState::Crashed;
}

StatusReport describe(const RunInfo& facts, double now) {
  const Words words(facts, now);
  StatusReport report{
      .state = words.state(), .rows = {}, .notes = words.notes(), .line = {}, .next = words.next()};
  const auto row = [&](const char* name, const std::string& text) {
    if (!text.empty()) report.rows.push_back({name, text});
  };
  row("run", facts.folder.string());
  row("state", words.state_text());
  row("loss", words.loss());
  row("learning rate", words.learning_rate());
  row("speed", words.speed());
  row("left", words.left());
  row("checkpoint", words.checkpoint());
  row("health", words.health());
  row("memory", words.memory());
  row("ranks", words.ranks());
  row("process", words.process());
  row("model", facts.has_model ? (facts.folder / "model").string() : "");
  const bool continues = facts.saved.has_value();
  row(continues ? "continue with" : "start again", report.next);
  report.line = format("{} {}", clock_text(now, "%Y-%m-%d %H:%M:%S"), words.state_text());
  if (words.is_live()) {
    if (facts.status->loss) report.line += format(", loss {:.4f}", *facts.status->loss);
    if (!words.speed().empty()) report.line += format(", {}", words.speed());
    if (!words.left().empty()) report.line += format(", left {}", words.left());
    if (words.stuck_seconds()) report.line += format(", {}", words.health());
  }
  return report;
}

Json to_json(const RunInfo& facts, double now) {
  const Words words(facts, now);
  Json json{{"run", facts.folder.string()},
            {"state", name_of(words.state())},
            {"words", words.state_text()},
            {"time", now},
            {"end_time", or_null(words.end_time())},
            {"stuck_seconds", or_null(words.stuck_seconds())},
            {"continue", or_null(words.next())},
            {"problems", words.notes()},
            {"model", or_null(facts.has_model ? (facts.folder / "model").string() : "")}};
  json["process"] = facts.life == ProcessState::Unknown ? "unknown"
                    : facts.life == ProcessState::Alive ? "alive"
                                                        : "gone";
  json["status"] = facts.status ? Json::parse(to_text(*facts.status)) : Json(nullptr);
  json["checkpoint"] = nullptr;
  if (facts.saved)
    json["checkpoint"] = {{"iteration", facts.saved->iteration},
                          {"time", facts.saved->time},
                          {"age", std::max(0.0, now - facts.saved->time)},
                          {"path", facts.saved->path.string()}};
  json["metrics"] = nullptr;
  if (facts.metrics)
    json["metrics"] = {{"iteration", facts.metrics->iteration},
                       {"iterations", facts.metrics->iterations},
                       {"loss", or_null(facts.metrics->loss)},
                       {"valid_loss", or_null(facts.metrics->valid_loss)},
                       {"written", facts.metrics->written}};
  return json;
}

}  // namespace bev::app
