// Reading metrics.jsonl again, for plots and for words about a run.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "ops/update_rule.h"
#include "report/status_file.h"

namespace bev {

// Means of single losses by their index in RunMetrics::loss_names; NaN where a line has none.
using LossValues = std::array<double, kMostLosses>;

// A number that the line does not have, or that was not finite, is NaN; a count is 0. `loss` is the
// weighted sum of a model with several losses.
struct IterationPoint {
  int64_t iteration = 0;
  int64_t consumed_samples = 0, global_batch = 0;
  double loss = 0, grad_norm = 0, learning_rate = 0, loss_scale = 0;
  bool applied = true;
  double seconds = 0, tokens_per_second = 0;
  LossValues losses{};
};

// Of a validation or a test.
struct EvaluationPoint {
  int64_t iteration = 0, samples = 0;
  double loss = 0, seconds = 0;
  LossValues losses{};
};

struct RunStartEvent {
  int64_t time = 0;  // seconds since 1970
  int64_t parameters = 0, iterations = 0;
};

// Something that happened: of the event "guard", "control" or "end".
struct RunNote {
  int64_t iteration = 0;
  std::string event, text;
};

struct RunMetrics {
  std::vector<std::string> loss_names;     // "lm", "top1_accuracy": of the members of all lines
  std::vector<IterationPoint> iterations;  // ascending, each iteration once
  std::vector<EvaluationPoint> validations, tests;
  std::vector<RunStartEvent> starts;
  std::vector<RunNote> notes;
  int64_t unusable_lines = 0;  // not JSON, too long, or without what its event needs
  bool has_half_line = false;  // at the end: a run is writing it, or was killed
};

// The history as it is told by a file that may be anything. Of two lines about the same iteration
// the later counts. A run that continues, or that a guard sent back, does iterations again: what
// stands before of those behind its first one is forgotten, done again or not. Notes stay: they
// tell why; only a run that begins anew in the file of another forgets those of the other.
class MetricsReader {
 public:
  // A line longer than this is unusable, and never in memory as a whole.
  static constexpr size_t kLongestLine = 1 << 16;

  // The next bytes of the file.
  void read(std::string_view bytes);
  RunMetrics finish();

 private:
  void line();
  LossValues losses_of(const Json& line);
  void add_iteration(const IterationPoint& point);
  void forget_from(int64_t iteration);

  RunMetrics metrics_;
  std::string line_;
  bool is_too_long_ = false;
  bool may_go_back_ = false;       // since the last iteration, something says so
  bool is_new_start_ = false;      // since the last iteration, the run was started
  size_t notes_before_start_ = 0;  // of metrics_.notes
};

// Data error when the file cannot be read or has no usable line.
RunMetrics read_metrics(const std::filesystem::path& path);

// The end of metrics.jsonl, for whoever wants to know how far a run is without reading weeks of it.

struct LastMetrics {
  int64_t iteration = 0;   // the last one; 0: none
  int64_t iterations = 0;  // of the training; 0: not known
  int64_t samples = 0;
  std::optional<double> loss{}, grad_norm{}, learning_rate{}, seconds{}, tokens_per_second{};
  std::optional<double> valid_loss{};  // the last one, where it is not far from the end
  std::vector<NamedLoss> losses{}, valid_losses{};
  double written = 0;  // seconds since 1970
};

// Reads no more than the end and the first line; what is not whole or makes no sense counts as not
// there. None: there is no such file. Data error: it cannot be read.
std::optional<LastMetrics> read_metrics_tail(const std::filesystem::path& path);

}  // namespace bev
