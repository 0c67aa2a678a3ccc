// bevatron plot: the curves of one or several runs, as a picture and in the terminal.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/cli_flags.h"
#include "app/cli/console.h"
#include "app/cli/verbs.h"
#include "base/check.h"
#include "base/file.h"
#include "base/format.h"
#include "report/plot/ascii_curve.h"
#include "report/plot/figure.h"
#include "report/plot/run_figure.h"
#include "train/run_directory.h"

namespace bev::app {

// The runs that `bevatron plot` is asked to draw: where they are, and what can be said of them.

// A run as it was named on the command line: its folder, its metrics.jsonl, or NAME= before either.
struct GivenRun {
  std::string name{};
  std::filesystem::path metrics{}, folder{};  // the folder is empty where the file was named
};

GivenRun given_run(const std::string& argument);

struct ChosenRuns {
  std::vector<GivenRun> given{};
  std::vector<PlottedRun> runs{};  // of each
};

// Those that can be drawn. What cannot, and what is missing in the others, is said on stderr; where
// none can, the Data error of the first is thrown.
ChosenRuns choose_runs(const std::vector<std::string>& arguments, const PlotOptions& options);

// How a run stands that has not done all its iterations: "; last written 3 s ago". Empty otherwise.
std::string standing_of(const GivenRun& run, const RunMetrics& metrics);

namespace {

namespace fs = std::filesystem;

constexpr std::array<VerbFlag, 7> kPlotFlags{{
    {"--output", "FILE",
     "a page (.html) or a drawing (.svg); -: a drawing, on stdout [default: plot.html in the run's "
     "folder; of several runs, in this one]"},
    {"--x", "AXIS", "iterations, samples, tokens or hours (of training) [default: iterations]"},
    {"--smooth", "N",
     "iterations in the mean that is drawn over the values; 1: no mean [default: as many as suit "
     "the length]"},
    {"--from", "N", "first iteration that is drawn"},
    {"--to", "N", "last iteration that is drawn"},
    {"--log", "", "logarithmic scale for the loss"},
    {"--difference", "", "of several runs: a panel with the loss minus that of the first"},
}};

constexpr std::array<std::string_view, 4> kAxes{"iterations", "samples", "tokens", "hours"};
constexpr int64_t kMostIterations = 1'000'000'000'000'000;
constexpr size_t kMostRuns = 100;
constexpr std::string_view kStdout = "-";

PlotOptions options_of(const FlagValues& flags) {
  PlotOptions options{.axis = static_cast<PlotAxis>(flags.choice("--x", 0, kAxes)),
                      .smooth = flags.integer("--smooth", 0, 1, kMostIterations),
                      .from = flags.integer("--from", 0, 0, kMostIterations),
                      .to = flags.integer("--to", kMostIterations, 0, kMostIterations),
                      .log = flags.has("--log"),
                      .difference = flags.has("--difference")};
  BEV_CHECK(options.from <= options.to, Usage,
            "--from {} lies behind --to {}: nothing is between them", options.from, options.to);
  BEV_CHECK(!options.difference || flags.positional().size() > 1, Usage,
            "--difference needs a second run: it shows the loss minus that of the first");
  return options;
}

// Where the picture goes. Known before anything is read, except for the folder of a single run.
std::string output_of(const FlagValues& flags) {
  const std::string file = flags.path("--output");
  BEV_CHECK(file.empty() || file == kStdout || file.ends_with(".html") || file.ends_with(".svg"),
            Usage,
            "--output {} is neither a page nor a drawing: its name must end with .html or "
            ".svg",
            file);
  return file;
}

fs::path default_output(const std::vector<GivenRun>& given) {
  return given.size() == 1 ? given[0].metrics.parent_path() / "plot.html" : fs::path("plot.html");
}

char letter_of(size_t run, size_t runs) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  return runs == 1 ? '*' : kLetters[run % kLetters.size()];
}

// The loss with letters, and the ends of the axis below it. Empty where there is little to draw.
std::string terminal_curves(const Figure& figure, size_t columns) {
  std::vector<LetterCurve> curves;
  for (const Panel& panel : figure.panels)
    for (const Line& line : panel.lines)
      if (panel.title == kLossTitle && line.style == LineStyle::Strong)
        curves.push_back(
            {.letter = letter_of(line.run, figure.runs.size()), .x = line.x, .y = line.y});
  const std::string drawing = loss_curves(curves, columns);
  if (drawing.empty()) return "";
  Range ends{.low = curves[0].x.front(), .high = curves[0].x.back()};
  size_t width = 0;
  for (const LetterCurve& curve : curves) {
    ends = {std::min(ends.low, curve.x.front()), std::max(ends.high, curve.x.back())};
    width = std::max(width, curve.x.size());
  }
  const auto text = [](double value) {
    return value < 1000 && value != std::floor(value) ? format("{:.3g}", value)
                                                      : with_commas(std::llround(value));
  };
  const std::string right = format("{} {}", text(ends.high), figure.x_label);
  return format("{}{:>9}{:<12}{:>{}}\n", drawing, "", text(ends.low), right,
                std::max(right.size(), std::max<size_t>(std::min(columns - 9, width), 12) - 12));
}

void write_picture(const fs::path& file, const std::string& text, bool is_chosen) {
  try {
    AtomicFile picture(file);
    picture.write(text);
    picture.commit();
  } catch (const Error& error) {
    if (is_chosen) throw;
    throw Error(error.kind, format("{}; --output FILE writes elsewhere", error.what()));
  }
}

}  // namespace

int plot(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "plot",
       .summary =
           "Draws the loss (of several losses their sum and each), learning rate, gradient norm "
           "and "
           "speed of one or several runs, going, ended or crashed, from their metrics.jsonl. RUN "
           "is the folder of a run or such a file; "
           "NAME=RUN gives it a name of its own. Several are drawn over each other. A page is one "
           "file that needs no network, a drawing is static. The loss is also shown here, with "
           "letters.",
       .flags = kPlotFlags,
       .positional = "RUN ...",
       .min_positional = 1,
       .max_positional = kMostRuns},
      args);
  if (!flags) return 0;
  const PlotOptions options = options_of(*flags);
  const std::string output = output_of(*flags);
  const ChosenRuns chosen = choose_runs(flags->positional(), options);
  const Figure figure = figure_of(chosen.runs, options);
  // Where the drawing goes to stdout, words must not.
  std::FILE* words = output == kStdout ? stderr : stdout;
  const size_t columns = terminal_columns(::fileno(words));
  fmt::print(words, "{}",
             terminal_curves(figure, columns == 0 ? 80 : std::min<size_t>(columns, 120)));
  for (size_t run = 0; run < chosen.runs.size(); ++run)
    fmt::print(words, "{}{}: {}{}\n",
               chosen.runs.size() > 1 ? format("{}  ", letter_of(run, chosen.runs.size())) : "",
               chosen.runs[run].name, summary_of(chosen.runs[run].metrics),
               standing_of(chosen.given[run], chosen.runs[run].metrics));
  if (output == kStdout) {
    fmt::print("{}", to_svg(figure));
    return 0;
  }
  const fs::path file = output.empty() ? default_output(chosen.given) : fs::path(output);
  const bool is_page = file.extension() == ".html";
  write_picture(file, is_page ? to_html(figure) : to_svg(figure), !output.empty());
  fmt::print("wrote {}\n", file.string());
  return 0;
}

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

// Reports what is missing in a file that can still be drawn.
void report_gaps(const GivenRun& run, const RunMetrics& metrics) {
  if (metrics.unusable_lines > 0)
    print_stderr("{}: {} that cannot be read {} left out\n", run.metrics.string(),
                 metrics.unusable_lines == 1
                     ? "a line"
                     : format("{} lines", with_commas(metrics.unusable_lines)),
                 metrics.unusable_lines == 1 ? "is" : "are");
  const auto has_any = [&](double IterationPoint::* member) {
    return std::any_of(metrics.iterations.begin(), metrics.iterations.end(),
                       [&](const IterationPoint& p) { return std::isfinite(p.*member); });
  };
  for (const auto& [name, member] :
       {std::pair("loss", &IterationPoint::loss),
        std::pair("learning_rate", &IterationPoint::learning_rate),
        std::pair("grad_norm", &IterationPoint::grad_norm),
        std::pair("tokens_per_second", &IterationPoint::tokens_per_second)})
    if (!has_any(member))
      print_stderr("{} has no {} that is a number: that curve is missing\n", run.metrics.string(),
                   name);
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
      report_gaps(run, metrics);
      if (!names.insert(run.name).second) run.name = argument;
      chosen.runs.push_back({.name = run.name, .metrics = std::move(metrics)});
      chosen.given.push_back(std::move(run));
    } catch (const Error& error) {
      if (error.kind != ErrorKind::Data) throw;
      errors.push_back(error);
    }
  }
  if (chosen.runs.empty()) throw Error(errors.front());
  for (const Error& error : errors) print_stderr("left out: {}\n", error.what());
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
