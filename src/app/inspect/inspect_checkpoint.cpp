#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>

#include "app/checkpoint/checkpoint_verbs.h"
#include "app/cli/progress_line.h"
#include "app/inspect/inspect_verbs.h"
#include "base/format.h"
#include "base/text_table.h"
#include "config/parse/field.h"
#include "config/parse/value.h"
#include "convert/tensor_comparison.h"

namespace bev::app {

namespace {

namespace fs = std::filesystem;

std::string date_text(int64_t time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  char text[64];
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
    return format("{} s after 1970", time);
  return text;
}

// Tensors of one kind: weights, or what an optimizer keeps under one name.
struct Kind {
  int64_t tensors = 0, elements = 0;
  size_t bytes = 0;
  std::map<std::string, int64_t> types{};
};

std::map<std::string, Kind> kinds_of(const CheckpointReader& checkpoint) {
  std::map<std::string, Kind> kinds;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    const size_t slash = parameter_of(name).size();
    Kind& kind = kinds[slash == name.size() ? "weights" : name.substr(slash + 1)];
    ++kind.tensors;
    kind.elements += tensor.shape.elements();
    kind.bytes += tensor.bytes();
    ++kind.types[std::string(name_of(tensor.dtype))];
  }
  return kinds;
}

std::string losses_text(const Manifest& m) {
  std::string text = m.loss ? format("{:.4f}", *m.loss) : "not known";
  if (m.valid_loss) text += format(", validation {:.4f}", *m.valid_loss);
  return text;
}

void print_positions(const Manifest& m) {
  print_row("iteration", with_commas(m.iteration));
  print_row("samples",
            format("{} consumed, {} by the schedule of the learning rate, the next is {}",
                   with_commas(m.consumed_samples), with_commas(m.scheduled_samples),
                   with_commas(m.data_position)));
  for (const SampleRange& range : m.skipped)
    print_row("left out",
              format("samples {} to {}", with_commas(range.begin), with_commas(range.end - 1)));
  print_row("loss", losses_text(m));
  print_row("written", date_text(m.time) + (m.is_permanent ? ", permanent" : ""));
  print_row("seed", format("{}", m.seed));
}

void print_contents(const CheckpointReader& checkpoint) {
  const Manifest& m = checkpoint.manifest();
  print_row("parameters", with_commas(m.parameters));
  print_row("optimizer", m.optimizer.empty() ? "none: weights only" : m.optimizer);
  for (const auto& [name, value] : m.update) print_row("  " + name, format("{}", value));
  for (const auto& [name, kind] : kinds_of(checkpoint)) {
    std::string types;
    for (const auto& [type, count] : kind.types)
      types += format("{}{} {}", types.empty() ? "" : ", ", count, type);
    print_row(name, format("{} in {} tensors ({})", as_bytes(static_cast<double>(kind.bytes)),
                           kind.tensors, types));
  }
  print_row("files",
            format("{}, {}", m.files.size(), as_bytes(static_cast<double>(checkpoint.bytes()))));
  TextTable row("  {:<44} {:>12}");
  for (const CheckpointFile& file : m.files)
    row(file.name, as_bytes(static_cast<double>(file.bytes)));
  fmt::print("{}", row.text);
}

void print_history(const Manifest& m) {
  for (const HistoryEntry& entry : m.history) {
    print_row("run", format("after iteration {}, {}, {}, {}", with_commas(entry.after_iteration),
                            date_text(entry.time), entry.program, entry.layout));
    for (const std::string& change : entry.changes) fmt::print("  changed     {}\n", change);
  }
}

void print_config_differences(const Manifest& m) {
  fmt::print("configuration, where it is not the default:\n");
  for (const auto& [path, value] : m.config) {
    const Field *named = find_field(path), *renamed = find_renamed_field(path);
    const Field* field = named != nullptr ? named : renamed;
    if (field == nullptr) {
      fmt::print("  {} = {}  (this program has no such field)\n", path, value);
    } else if (value != toml_text(*field, field->standard)) {
      const std::string note = named != nullptr ? "" : format("  ({})", renamed_note(*field));
      fmt::print("  {} = {}{}\n", path, value, note);
    }
  }
}

// Of every tensor, in the order of their names.
std::vector<TensorStatistics> read_statistics(const TensorSource& source) {
  int64_t elements = 0, done = 0;
  for (const auto& [name, entry] : source.tensors()) elements += entry.shape.elements();
  ProgressLine progress("reading", elements, "elements");
  std::vector<TensorStatistics> all;
  for (const auto& [name, entry] : source.tensors())
    all.push_back(
        statistics_of(source, name, [&](int64_t count) { progress.update(done += count); }));
  return all;
}

// `statistics`: of every tensor, or none.
void print_tensors(const CheckpointReader& checkpoint,
                   const std::vector<TensorStatistics>& statistics) {
  size_t width = 6;
  for (const auto& [name, tensor] : checkpoint.tensors()) width = std::max(width, name.size());
  TextTable row("{:<*}  {:<5} {:>16} {:>6} {:>11.5g} {:>11.4g} {:>11.4g} {:>10}", width);
  if (statistics.empty())
    row("tensor", "type", "shape", "pieces");
  else
    row("tensor", "type", "shape", "pieces", "norm", "min", "max", "not finite");
  size_t i = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    const std::string shape = to_string(tensor.shape);
    if (statistics.empty()) {
      row(name, name_of(tensor.dtype), shape, tensor.parts.size());
    } else {
      const TensorStatistics& s = statistics[i++];
      row(name, name_of(tensor.dtype), shape, tensor.parts.size(), s.norm, s.smallest, s.largest,
          s.non_finite);
    }
  }
  fmt::print("{}", row.text);
}

}  // namespace

void inspect_checkpoint(const fs::path& path, bool with_norms) {
  if (!is_checkpoint(path)) {
    print_checkpoints(survey(path));
    fmt::print("\n");
  }
  const fs::path folder = newest_good(path).path;
  const auto checkpoint = std::make_shared<const CheckpointReader>(folder);
  const Manifest& m = checkpoint->manifest();
  print_row("checkpoint", folder.string());
  print_positions(m);
  print_contents(*checkpoint);
  print_history(m);
  print_config_differences(m);
  print_tensors(*checkpoint, with_norms ? read_statistics(*tensors_of(checkpoint))
                                        : std::vector<TensorStatistics>{});
}

}  // namespace bev::app
