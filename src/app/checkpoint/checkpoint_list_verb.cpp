// bevatron checkpoint list: the checkpoints of a folder.
#include <algorithm>
#include <array>
#include <cstdio>

#include "app/checkpoint/checkpoint_verbs.h"
#include "app/cli/cli_flags.h"
#include "base/clock.h"
#include "base/text_table.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 1> kCheckpointListFlags{{
    {"--json", "", "print JSON with stable keys instead of a table"},
}};

std::string layout_of(const Manifest& manifest) {
  return manifest.history.empty() ? "" : manifest.history.back().layout;
}

std::string loss_text(const std::optional<double>& loss) {
  return loss ? format("{:.4f}", *loss) : "-";
}

Json to_json(const CheckpointInfo& found, int64_t now) {
  Json json{{"name", found.name()},
            {"path", found.place.path.string()},
            {"bytes", found.bytes},
            {"state", found.is_good() ? "good" : "incomplete"}};
  if (!found.is_good()) json["problem"] = found.problem;
  if (!found.manifest) return json;
  const Manifest& m = *found.manifest;
  json["iteration"] = m.iteration;
  json["samples"] = m.consumed_samples;
  json["loss"] = m.loss ? Json(*m.loss) : Json();
  json["valid_loss"] = m.valid_loss ? Json(*m.valid_loss) : Json();
  json["time"] = m.time;
  json["age"] = std::max<int64_t>(0, now - m.time);
  json["layout"] = layout_of(m);
  json["permanent"] = m.is_permanent;
  return json;
}

}  // namespace

void print_checkpoints(const std::vector<CheckpointInfo>& all) {
  const auto now = static_cast<int64_t>(unix_seconds());
  TextTable row("{:<14} {:>12} {:>9} {:>10} {:>11} {:>13}  {:<10}  {}");
  row("checkpoint", "samples", "loss", "validation", "size", "age", "state", "layout");
  for (const CheckpointInfo& found : all) {
    const std::string size = as_bytes(static_cast<double>(found.bytes));
    const char* state = found.is_good() ? "good" : "incomplete";
    if (found.manifest) {
      const Manifest& m = *found.manifest;
      row(found.name(), with_commas(m.consumed_samples), loss_text(m.loss), loss_text(m.valid_loss),
          size, as_duration(static_cast<double>(std::max<int64_t>(0, now - m.time))), state,
          layout_of(m) + (m.is_permanent ? ", permanent" : ""));
    } else {
      row(found.name(), "-", "-", "-", size, "-", state);
    }
  }
  fmt::print("{}", row.text);
  for (const CheckpointInfo& found : all)
    if (!found.is_good()) fmt::print("{}: {}\n", found.name(), found.problem);
}

int checkpoint_list(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "checkpoint list",
       .summary = "Lists the checkpoints in DIR, a folder of checkpoints, of a run or one "
                  "checkpoint, newest first. Good: manifest, sizes and headers are right "
                  "and all tensors are there; `checkpoint verify` reads the data too.",
       .flags = kCheckpointListFlags,
       .positional = "DIR",
       .min_positional = 1,
       .max_positional = 1},
      args);
  if (!flags) return 0;
  const std::vector<CheckpointInfo> all = survey(flags->positional().front());
  if (!flags->has("--json")) {
    print_checkpoints(all);
    return 0;
  }
  Json list = Json::array();
  const auto now = static_cast<int64_t>(unix_seconds());
  for (const CheckpointInfo& found : all) list.push_back(to_json(found, now));
  fmt::print("{}\n", list.dump(2, ' ', false, Json::error_handler_t::replace));
  return 0;
}

}  // namespace bev::app
