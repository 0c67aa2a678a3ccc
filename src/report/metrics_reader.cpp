#include "report/metrics_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "model/losses.h"
#include "ops/update_rule.h"

namespace bev {

namespace {

constexpr int64_t kMostIterations = 1'000'000'000'000'000;
constexpr size_t kLongestNote = 1000, kLongestName = 100;

double number_at(const Json& line, const std::string& name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>()
                                                   : std::numeric_limits<double>::quiet_NaN();
}

std::optional<int64_t> integer(const Json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<uint64_t>() > uint64_t{kMostIterations})
    return std::nullopt;
  const auto value = found->get<int64_t>();
  return value < 0 || value > kMostIterations ? std::nullopt : std::optional(value);
}

int64_t count_at(const Json& line, const char* name) { return integer(line, name).value_or(0); }

std::string text(const Json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>().substr(0, kLongestNote);
}

bool applied(const Json& line) {
  const auto found = line.find("applied");
  return found == line.end() || !found->is_boolean() || found->get<bool>();
}

constexpr std::string_view kLossEnding = "_loss";

// The name of the loss or accuracy that a member is the mean of; empty: another member.
std::string loss_name(std::string_view key) {
  if (key.ends_with(kLossEnding))
    key.remove_suffix(kLossEnding.size());
  else if (!is_accuracy(key))
    return {};
  return harmless(key, kLongestName);
}

// The weighted sum is there if there are several losses; a single loss is the sum.
std::string total_loss_key(const Json& line) {
  for (const char* usual : {"loss", "lm_loss"})
    if (line.contains(usual)) return usual;
  for (const auto& [key, value] : line.items())
    if (key.ends_with(kLossEnding)) return key;
  return "lm_loss";
}

IterationPoint iteration_point(const Json& line, int64_t iteration, const LossValues& losses) {
  return {.iteration = iteration,
          .consumed_samples = count_at(line, "consumed_samples"),
          .global_batch = count_at(line, "global_batch"),
          .loss = number_at(line, total_loss_key(line)),
          .grad_norm = number_at(line, "grad_norm"),
          .learning_rate = number_at(line, "learning_rate"),
          .loss_scale = number_at(line, "loss_scale"),
          .applied = applied(line),
          .seconds = number_at(line, "seconds"),
          .tokens_per_second = number_at(line, "tokens_per_second"),
          .losses = losses};
}

EvaluationPoint evaluation_point(const Json& line, int64_t iteration, const LossValues& losses) {
  return {.iteration = iteration,
          .samples = count_at(line, "samples"),
          .loss = number_at(line, total_loss_key(line)),
          .seconds = number_at(line, "seconds"),
          .losses = losses};
}

// Ascending, and of equal iterations the last.
template <class Point>
void put_in_order(std::vector<Point>& points) {
  const auto is_before = [](const Point& a, const Point& b) { return a.iteration < b.iteration; };
  if (std::adjacent_find(points.begin(), points.end(), [](const Point& a, const Point& b) {
        return a.iteration >= b.iteration;
      }) == points.end())
    return;
  std::stable_sort(points.begin(), points.end(), is_before);
  size_t kept = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool is_repeated = kept > 0 && points[kept - 1].iteration == points[i].iteration;
    points[is_repeated ? kept - 1 : kept++] = points[i];
  }
  points.resize(kept);
}

}  // namespace

void MetricsReader::read(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > kLongestLine) is_too_long_ = true;
    if (!is_too_long_) line_ += part;
    if (end == std::string_view::npos) return;
    line();
    line_.clear();
    is_too_long_ = false;
    bytes.remove_prefix(end + 1);
  }
}

RunMetrics MetricsReader::finish() {
  const int64_t before = metrics_.unusable_lines;
  if (!line_.empty() || is_too_long_) line();
  // Without its end a line is not wrong, only not finished.
  metrics_.has_half_line = metrics_.unusable_lines > before;
  metrics_.unusable_lines = before;
  put_in_order(metrics_.iterations);
  put_in_order(metrics_.validations);
  put_in_order(metrics_.tests);
  return std::move(metrics_);
}

void MetricsReader::line() {
  if (!is_too_long_ && line_.find_first_not_of(" \t\r") == std::string::npos) return;
  const Json json = is_too_long_ ? Json() : Json::parse(line_, nullptr, false);
  const std::string event = json.is_object() ? text(json, "event") : "";
  if (event.empty()) {
    ++metrics_.unusable_lines;
    return;
  }
  if (event == "start") {
    metrics_.starts.push_back({.time = count_at(json, "time"),
                               .parameters = count_at(json, "parameters"),
                               .iterations = count_at(json, "iterations")});
    may_go_back_ = is_new_start_ = true;
    notes_before_start_ = metrics_.notes.size();
    return;
  }
  const bool is_note = event == "guard" || event == "control" || event == "end";
  if (!is_note && event != "iteration" && event != "validation" && event != "test") return;
  const std::optional<int64_t> iteration = integer(json, "iteration");
  if (!iteration) {
    ++metrics_.unusable_lines;
  } else if (event == "iteration") {
    add_iteration(iteration_point(json, *iteration, losses_of(json)));
  } else if (is_note) {
    metrics_.notes.push_back({.iteration = *iteration, .event = event, .text = text(json, "text")});
    may_go_back_ = true;
  } else {
    (event == "test" ? metrics_.tests : metrics_.validations)
        .push_back(evaluation_point(json, *iteration, losses_of(json)));
  }
}

LossValues MetricsReader::losses_of(const Json& line) {
  LossValues values;
  values.fill(std::numeric_limits<double>::quiet_NaN());
  std::vector<std::string>& names = metrics_.loss_names;
  for (const auto& [key, mean] : line.items()) {
    const std::string name = loss_name(key);
    if (name.empty()) continue;
    const auto found = std::find(names.begin(), names.end(), name);
    const auto index = static_cast<size_t>(found - names.begin());
    if (index == names.size()) {
      if (names.size() == values.size()) continue;
      names.push_back(name);
    }
    if (mean.is_number()) values[index] = mean.get<double>();
  }
  return values;
}

void MetricsReader::add_iteration(const IterationPoint& point) {
  if (may_go_back_) forget_from(point.iteration);
  may_go_back_ = is_new_start_ = false;
  metrics_.iterations.push_back(point);
}

void MetricsReader::forget_from(int64_t iteration) {
  const auto is_later = [&](const auto& entry) { return entry.iteration >= iteration; };
  // Points come in order but for files that nobody wrote so: the end is where later ones are.
  auto& points = metrics_.iterations;
  while (!points.empty() && is_later(points.back())) points.pop_back();
  for (auto* evaluations : {&metrics_.validations, &metrics_.tests})
    while (!evaluations->empty() && is_later(evaluations->back())) evaluations->pop_back();
  if (is_new_start_ && points.empty())
    metrics_.notes.erase(metrics_.notes.begin(),
                         metrics_.notes.begin() + static_cast<ptrdiff_t>(notes_before_start_));
}

RunMetrics read_metrics(const std::filesystem::path& path) {
  const PositionedFile file(path);
  MetricsReader reader;
  std::vector<std::byte> buffer(std::min(file.size(), size_t{1} << 18));
  for (size_t at = 0; at < file.size(); at += buffer.size()) {
    const std::span<std::byte> part =
        std::span(buffer).first(std::min(buffer.size(), file.size() - at));
    file.read(at, part);
    reader.read({reinterpret_cast<const char*>(part.data()), part.size()});
  }
  RunMetrics metrics = reader.finish();
  const bool is_usable = !metrics.iterations.empty() || !metrics.validations.empty() ||
                         !metrics.tests.empty() || !metrics.starts.empty() ||
                         !metrics.notes.empty();
  BEV_CHECK(is_usable, Data,
            "{} has no line of a training{}: a metrics.jsonl that `bevatron "
            "train` wrote has objects of JSON, one a line, with an \"event\"",
            path.string(),
            metrics.unusable_lines > 0
                ? format(", only {} that cannot be used", with_commas(metrics.unusable_lines))
                : std::string());
  return metrics;
}

namespace {

constexpr size_t kTailBytes = size_t{256} << 10, kFirstBytes = 4096;

std::string read_part(const PositionedFile& file, size_t begin, size_t bytes) {
  std::string text(std::min(bytes, file.size() - begin), '\0');
  file.read(begin, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

std::optional<double> number_in(const Json& line, const std::string& name) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// The members NAME_loss and NAME_accuracy.
std::vector<NamedLoss> losses_in(const Json& line) {
  std::vector<NamedLoss> losses;
  for (const auto& [key, mean] : line.items()) {
    std::string name = loss_name(key);
    if (name.empty() || losses.size() == kMostLosses) continue;
    losses.push_back({std::move(name), mean.is_number() ? mean.get<double>() : NAN});
  }
  return losses;
}

int64_t count_in(const Json& line, const char* name) {
  const auto found = line.find(name);
  const bool is_count = found != line.end() && found->is_number_unsigned() &&
                        found->get<uint64_t>() <= uint64_t{1} << 62;
  return is_count ? found->get<int64_t>() : 0;
}

// What a line adds to what later ones have said.
class Gathered {
 public:
  void add(std::string_view text) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) return;
    const auto event = line.find("event");
    if (event == line.end()) return;
    if (*event == "iteration" && metrics.iteration == 0) {
      metrics.iteration = count_in(line, "iteration");
      metrics.samples = count_in(line, "consumed_samples");
      metrics.loss = number_in(line, total_loss_key(line));
      metrics.losses = losses_in(line);
      metrics.grad_norm = number_in(line, "grad_norm");
      metrics.learning_rate = number_in(line, "learning_rate");
      metrics.seconds = number_in(line, "seconds");
      metrics.tokens_per_second = number_in(line, "tokens_per_second");
    } else if (*event == "validation" && !metrics.valid_loss) {
      metrics.valid_loss = number_in(line, total_loss_key(line));
      metrics.valid_losses = losses_in(line);
    } else if (*event == "start" && metrics.iterations == 0) {
      metrics.iterations = count_in(line, "iterations");
    }
  }
  bool is_complete() const {
    return metrics.iteration > 0 && metrics.valid_loss && metrics.iterations > 0;
  }

  LastMetrics metrics{};
};

}  // namespace

std::optional<LastMetrics> read_metrics_tail(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  BEV_CHECK(S_ISREG(info.st_mode), Data, "{} is not a regular file", path.string());
  const PositionedFile file(path);
  const size_t begin = file.size() - std::min(file.size(), kTailBytes);
  const std::string text = read_part(file, begin, kTailBytes);
  std::string_view rest = text;  // its first line may be half of one, and is no JSON then
  Gathered gathered;
  while (!rest.empty() && !gathered.is_complete()) {
    if (rest.back() == '\n') rest.remove_suffix(1);
    const size_t end = rest.rfind('\n');
    gathered.add(end == std::string_view::npos ? rest : rest.substr(end + 1));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(0, end + 1);
  }
  if (gathered.metrics.iterations == 0) {
    const std::string first = read_part(file, 0, kFirstBytes);
    gathered.add(std::string_view(first).substr(0, first.find('\n')));
  }
  gathered.metrics.written = static_cast<double>(info.st_mtim.tv_sec);
  return gathered.metrics;
}

}  // namespace bev
