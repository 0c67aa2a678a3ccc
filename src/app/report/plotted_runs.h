// The runs that `bevatron plot` is asked to draw: where they are, and what can be said of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/plot/run_figure.h"

namespace bev::app {

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

}  // namespace bev::app
