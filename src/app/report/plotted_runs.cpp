#include "app/report/plotted_runs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "app/cli/terminal.h"
#include "base/check.h"
#include "base/format.h"
#include "train/run_directory.h"

namespace bev::app {

namespace fs = std::filesystem;

namespace {

// Why a folder has no metrics, in words that help.
[[noreturn]] void refuse_folder(const fs::path& folder) {
  std::error_code ignored;
  const RunDirectory run(folder);
  if (fs::exists(run.config_file(), ignored))
    throw Error(
        ErrorKind::Data,
        format("{} is the folder of a run (it has config.toml), but there is no {}: the run "
               "has not begun to train, or the file was deleted",
               folder.string(), run.metrics_file().filename().string()));
  throw Error(ErrorKind::Data,
              format("{} is no folder of a run: it has neither metrics.jsonl nor config.toml; "
                     "`bevatron train` writes both into train.output",
                     folder.string()));
}

RunMetrics metrics_of(const GivenRun& run, const PlotOptions& options) {
  std::error_code ignored;
  if (!run.folder.empty() && !fs::exists(run.metrics, ignored)) refuse_folder(run.folder);
  BEV_CHECK(fs::exists(run.metrics, ignored), Data,
            "there is no {}: a run is the folder that `bevatron train` wrote, or the metrics.jsonl "
            "in it",
            run.metrics.string());
  RunMetrics metrics = read_metrics(run.metrics);
  BEV_CHECK(!metrics.iterations.empty(), Data,
            "{} has no iteration yet: the run has just begun, or ended before its first one",
            run.metrics.string());
  const auto inside =
      std::find_if(metrics.iterations.begin(), metrics.iterations.end(),
                   [&](const IterationPoint& p) { return p.iteration >= options.from; });
  BEV_CHECK(inside != metrics.iterations.end() && inside->iteration <= options.to, Data,
            "{} has no iteration between --from and --to: it has {} to {}", run.metrics.string(),
            with_commas(metrics.iterations.front().iteration),
            with_commas(metrics.iterations.back().iteration));
  BEV_CHECK(RunAxis(metrics, options.axis).is_known(), Data,
            "{} does not say how many {} its iterations took, as a file of an older version may "
            "not: --x iterations needs no more than their numbers",
            run.metrics.string(), label_of(options.axis));
  return metrics;
}

// What is missing in a file that can be drawn all the same.
void tell_gaps(const GivenRun& run, const RunMetrics& metrics) {
  if (metrics.unusable_lines > 0)
    say("{}: {} that cannot be read {} left out\n", run.metrics.string(),
        metrics.unusable_lines == 1 ? "a line"
                                    : format("{} lines", with_commas(metrics.unusable_lines)),
        metrics.unusable_lines == 1 ? "is" : "are");
  const auto has_any = [&](double IterationPoint::* member) {
    return std::any_of(metrics.iterations.begin(), metrics.iterations.end(),
                       [&](const IterationPoint& p) { return std::isfinite(p.*member); });
  };
  for (const auto& [name, member] :
       {std::pair("lm_loss", &IterationPoint::loss),
        std::pair("learning_rate", &IterationPoint::learning_rate),
        std::pair("grad_norm", &IterationPoint::grad_norm),
        std::pair("tokens_per_second", &IterationPoint::tokens_per_second)})
    if (!has_any(member))
      say("{} has no {} that is a number: that curve is missing\n", run.metrics.string(), name);
}

}  // namespace

GivenRun given_run(const std::string& argument) {
  std::error_code ignored;
  const size_t equals = argument.find('=');
  // Unless something has that whole name.
  const bool has_name = equals != std::string::npos && equals > 0 && !fs::exists(argument, ignored);
  const fs::path path = has_name ? argument.substr(equals + 1) : argument;
  const bool is_folder = fs::is_directory(path, ignored);
  GivenRun run{.name = argument.substr(0, has_name ? equals : 0),
               .metrics = is_folder ? RunDirectory(path).metrics_file() : path,
               .folder = is_folder ? path : fs::path()};
  if (has_name) return run;
  const fs::path whole = fs::absolute(run.metrics, ignored).lexically_normal();
  run.name = is_folder || path.filename() == "metrics.jsonl" ? whole.parent_path().filename()
                                                             : path.stem();
  return run;
}

ChosenRuns choose_runs(const std::vector<std::string>& arguments, const PlotOptions& options) {
  ChosenRuns chosen;
  std::vector<Error> errors;
  std::set<std::string> names;
  for (const std::string& argument : arguments) {
    GivenRun run = given_run(argument);
    try {
      RunMetrics metrics = metrics_of(run, options);
      tell_gaps(run, metrics);
      if (!names.insert(run.name).second) run.name = argument;
      chosen.runs.push_back({.name = run.name, .metrics = std::move(metrics)});
      chosen.given.push_back(std::move(run));
    } catch (const Error& error) {
      if (error.kind != ErrorKind::Data) throw;
      errors.push_back(error);
    }
  }
  if (chosen.runs.empty()) throw Error(errors.front());
  for (const Error& error : errors) say("left out: {}\n", error.what());
  return chosen;
}

std::string standing_of(const GivenRun& run, const RunMetrics& metrics) {
  const int64_t planned = metrics.starts.empty() ? 0 : metrics.starts.back().iterations;
  const int64_t reached = metrics.iterations.back().iteration;
  if (!metrics.notes.empty() && metrics.notes.back().event == "end" &&
      metrics.notes.back().iteration >= reached)
    return metrics.notes.back().text.empty() ? "" : format("; {}", metrics.notes.back().text);
  if (reached >= planned) return "";
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(run.metrics, error);
  if (error) return "";
  const std::chrono::duration<double> age = fs::file_time_type::clock::now() - written;
  return format("; last written {} ago", as_duration(std::max(0.0, age.count())));
}

}  // namespace bev::app
