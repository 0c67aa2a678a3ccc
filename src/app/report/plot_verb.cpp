// bevatron plot: the curves of one or several runs, as a picture and in the terminal.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "app/cli/cli_flags.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "app/report/plotted_runs.h"
#include "base/check.h"
#include "base/file.h"
#include "base/format.h"
#include "report/plot/ascii_curve.h"
#include "report/plot/html_page.h"
#include "report/plot/run_summary.h"
#include "report/plot/svg_writer.h"

namespace bev::app {

namespace {

namespace fs = std::filesystem;

constexpr std::array<OwnFlag, 7> kPlotFlags{{
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
           "Draws the loss, learning rate, gradient norm and speed of one or several runs, going, "
           "ended or crashed, from their metrics.jsonl. RUN is the folder of a run or such a file; "
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

}  // namespace bev::app
