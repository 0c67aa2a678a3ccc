#include "report/tensorboard/tensorboard_writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/format.h"

namespace bev {

namespace {

namespace fs = std::filesystem;

fs::path made(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  BEV_CHECK(!error, Data, "cannot make the folder {} (log.tensorboard): {}", folder.string(),
            error.message());
  return folder;
}

// Markdown shows lines with four blanks before them as they are.
std::string verbatim(const std::string& text) {
  std::istringstream lines(text);
  std::string shown;
  for (std::string line; std::getline(lines, line);) shown += "    " + line + "\n";
  return shown;
}

constexpr const char* kVersion = "brain.Event:2";
// Readers that know only versions before 2 find restarts by steps that go back, tag by tag.
constexpr const char* kVersionOfStepsThatGoBack = "brain.Event:1";

}  // namespace

TensorBoardWriter::TensorBoardWriter(const LogConfig& config, const fs::path& path, int world_size,
                                     const std::string& config_text, double most_seconds_waiting)
    : interval_(config.tensorboard_interval),
      queue_(config.tensorboard_queue),
      most_seconds_waiting_(most_seconds_waiting),
      world_size_(world_size),
      has_earlier_(has_event_files(path)),
      file_(next_event_file(made(path), static_cast<int64_t>(unix_seconds()))),
      flushed_(seconds_now()) {
  const double now = unix_seconds();
  file_.add(version_event(now, kVersion));
  file_.add(text_event(now, 0, "configuration", verbatim(config_text)));
  flush();
}

void TensorBoardWriter::add(const Progress& p) {
  samples_ = p.samples;
  skipped_ += p.result.applied ? 0 : 1;
  if (p.iteration % interval_ == 0) {
    std::vector<ScalarPoint> points{{"learning-rate", p.result.next_lr},
                                    {"batch-size", static_cast<double>(p.batch)}};
    for (const LossMean& loss : p.result.losses)
      points.push_back({label_of_loss(loss.name), loss.value});
    points.push_back({"loss-scale", p.result.loss_scale});
    points.push_back({"world-size", static_cast<double>(world_size_)});
    if (std::isfinite(p.result.grad_norm)) points.push_back({"grad-norm", p.result.grad_norm});
    add_on_both(p.iteration, p.samples, points);
    add_points(p.iteration, {{{"iteration-time", p.seconds},
                              {"throughput", p.tokens_per_second},
                              {"skipped-iterations", static_cast<double>(skipped_)}}});
  }
  flush_if_due();
}

void TensorBoardWriter::add(const Validation& v) {
  // Beyond this the perplexity says nothing.
  constexpr double kMostNats = 20;
  std::vector<ScalarPoint> points;
  for (const LossMean& loss : v.losses) {
    const std::string tag = format("{} {}", label_of_loss(loss.name), v.split);
    points.push_back({tag, loss.value});
    if (is_accuracy(loss.name)) continue;
    points.push_back({tag + " ppl", std::exp(std::min(loss.value, kMostNats))});
  }
  add_on_both(v.iteration, samples_, points);
  flush_if_due();
}

void TensorBoardWriter::add_on_both(int64_t iteration, std::optional<int64_t> samples,
                                    std::span<const ScalarPoint> points) {
  add_points(iteration, points);
  if (!samples) return;
  std::vector<ScalarPoint> by_samples(points.begin(), points.end());
  for (ScalarPoint& point : by_samples) point.tag += " vs samples";
  add_points(*samples, by_samples);
}

// TensorBoard's fast loader lets a point replace those of its tag that lie at its x or behind. Its
// other readers do so for files of version 1 alone, when an event has a smaller step than the one
// before. The mark of version 2, SessionLog::START, would cut all tags at one and the same x:
// whole curves over samples would be gone after a resume at some iteration.
void TensorBoardWriter::add_points(int64_t x, std::span<const ScalarPoint> points) {
  const double now = unix_seconds();
  bool replaces = false;
  for (const ScalarPoint& point : points) {
    const auto [last, is_first] = last_.try_emplace(point.tag, x);
    replaces |= is_first ? has_earlier_ : x <= last->second;
    last->second = x;
  }
  if (replaces) {
    file_.add(version_event(now, kVersionOfStepsThatGoBack));
    file_.add(scalars_event(now, std::numeric_limits<int64_t>::max(), {}));
  }
  file_.add(scalars_event(now, x, points));
  if (replaces) file_.add(version_event(now, kVersion));
  waiting_ += static_cast<int64_t>(points.size());
}

void TensorBoardWriter::flush_if_due() {
  if (waiting_ >= queue_ || seconds_now() - flushed_ >= most_seconds_waiting_) flush();
}

void TensorBoardWriter::flush() {
  file_.flush();
  waiting_ = 0;
  flushed_ = seconds_now();
}

}  // namespace bev
