// bevatron diff: how the tensors and the configurations of two checkpoints or models differ.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "app/cli/cli_flags.h"
#include "app/cli/progress_line.h"
#include "app/cli/verbs.h"
#include "base/format.h"
#include "convert/tensor_comparison.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 3> kDiffFlags{{
    {"--optimizer", "", "compare what the optimizers keep too"},
    {"--tolerance", "X",
     "a relative difference of a tensor up to this counts as none [default: 0]"},
    {"--all", "", "list the tensors that are equal too"},
}};

constexpr int kDiffer = 1;

std::string type_and_shape(const TensorSource::Entry& entry) {
  return format("{} {}", name_of(entry.dtype), to_string(entry.shape));
}

std::string verdict(const TensorComparison& t, double tolerance) {
  if (!t.is_compared)
    return format("other shape: {} and {}", to_string(t.entry[0].shape),
                  to_string(t.entry[1].shape));
  std::string text;
  if (t.is_same()) {
    text = t.has_other_type() ? format("equal in value, {} and {}", name_of(t.entry[0].dtype),
                                       name_of(t.entry[1].dtype))
                              : "equal bit for bit";
  } else {
    text = format("relative {:.3g}, largest {:.3g}, {} of {} elements, the first at {}, {}",
                  t.relative, t.largest, with_commas(t.differing),
                  with_commas(t.rows * whole_of(t.entry[0].shape).columns), t.first_row,
                  t.first_column);
    if (t.has_other_type())
      text += format("; {} and {}", name_of(t.entry[0].dtype), name_of(t.entry[1].dtype));
    if (t.is_within(tolerance)) text += "; within the tolerance";
  }
  if (t.has_other_rows())
    text += format("; {} and {} rows, the first {} compared", t.entry[0].shape[0],
                   t.entry[1].shape[0], t.rows);
  return text;
}

std::vector<TensorComparison> compare_all(const TensorSource& first, const TensorSource& second,
                                          const std::vector<std::string>& names) {
  int64_t elements = 0, done = 0;
  for (const std::string& name : names) elements += first.tensors().at(name).shape.elements();
  ProgressLine progress("comparing", elements, "elements");
  std::vector<TensorComparison> all;
  for (const std::string& name : names)
    all.push_back(compare_tensor(first, second, name,
                                 [&](int64_t count) { progress.update(done += count); }));
  return all;
}

// Whether all tensors are the same, within the tolerance.
bool compare_tensors(const TensorSource& first, const TensorSource& second, double tolerance,
                     const FlagValues& flags) {
  const TensorNames names = match_tensors(first, second, flags.has("--optimizer"));
  size_t width = 0;
  for (const std::string& name : names.both) width = std::max(width, name.size());
  int64_t same = 0, close = 0;
  for (const TensorComparison& t : compare_all(first, second, names.both)) {
    same += t.is_same() ? 1 : 0;
    close += !t.is_same() && t.is_within(tolerance) ? 1 : 0;
    if (!t.is_same() || t.has_other_rows() || flags.has("--all"))
      fmt::print("{:<{}}  {}\n", t.name, width, verdict(t, tolerance));
  }
  for (const std::string& name : names.only_first)
    fmt::print("only in A: {} {}\n", name, type_and_shape(first.tensors().at(name)));
  for (const std::string& name : names.only_second)
    fmt::print("only in B: {} {}\n", name, type_and_shape(second.tensors().at(name)));
  const auto differing = static_cast<int64_t>(names.both.size()) - same - close;
  const size_t unmatched = names.only_first.size() + names.only_second.size();
  fmt::print(
      "{} tensors are equal, {} differ within the tolerance, {} beyond it, {} are in one only\n",
      same, close, differing, unmatched);
  return differing == 0 && unmatched == 0;
}

using Facts = std::map<std::string, std::string>;

Facts facts_of(const Manifest& m) {
  const auto loss = [](const std::optional<double>& value) {
    return value ? format("{}", *value) : "none";
  };
  Facts facts{{"iteration", format("{}", m.iteration)},
              {"consumed_samples", format("{}", m.consumed_samples)},
              {"scheduled_samples", format("{}", m.scheduled_samples)},
              {"data_position", format("{}", m.data_position)},
              {"seed", format("{}", m.seed)},
              {"optimizer", m.optimizer.empty() ? "none" : m.optimizer},
              {"parameters", format("{}", m.parameters)},
              {"loss", loss(m.loss)},
              {"valid_loss", loss(m.valid_loss)}};
  for (const auto& [name, value] : m.update) facts["update " + name] = format("{}", value);
  return facts;
}

void print_differences(const Facts& a, const Facts& b) {
  Facts names = a;
  names.insert(b.begin(), b.end());
  const auto text = [](const Facts& facts, const std::string& name) {
    const auto found = facts.find(name);
    return found == facts.end() ? std::string("none") : found->second;
  };
  for (const auto& [name, unused] : names)
    if (text(a, name) != text(b, name))
      fmt::print("  {}: {} -> {}\n", name, text(a, name), text(b, name));
}

}  // namespace

int diff(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "diff",
       .summary = "Compares the tensors of two checkpoints of any layouts and types, or of folders "
                  "or files in safetensors format, by their names. Of a folder of checkpoints or a "
                  "run, the newest good one is meant. A relative difference is the norm of the "
                  "difference over the norm in B. Tables of a vocabulary that are padded to "
                  "different numbers of rows are compared as far as both go. Exit code 0: all "
                  "tensors are equal, or within --tolerance; 1: they are not.",
       .flags = kDiffFlags,
       .positional = "A B",
       .min_positional = 2,
       .max_positional = 2},
      args);
  if (!flags) return 0;
  const double tolerance = flags->real("--tolerance", 0, 0, 1e9);
  const std::unique_ptr<TensorSource> first = open_tensor_source(flags->positional()[0]);
  const std::unique_ptr<TensorSource> second = open_tensor_source(flags->positional()[1]);
  fmt::print("A  {}\nB  {}\n", first->path().string(), second->path().string());
  const bool is_same = compare_tensors(*first, *second, tolerance, *flags);
  if (first->manifest() != nullptr && second->manifest() != nullptr) {
    fmt::print("manifest and configuration, A -> B, where they differ:\n");
    print_differences(facts_of(*first->manifest()), facts_of(*second->manifest()));
    print_differences(first->manifest()->config, second->manifest()->config);
  }
  return is_same ? 0 : kDiffer;
}

}  // namespace bev::app
