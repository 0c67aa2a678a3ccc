// What a run that continues from a checkpoint does differently, and whether it may.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/parse/describe.h"

namespace bev {

// A configuration as a checkpoint holds it: every field by its path, written as in a TOML file.

using StoredConfig = std::map<std::string, std::string>;

StoredConfig stored_config(const Config& config);

// The inverse; reads earlier paths of fields too. Paths that this version does not know are left
// out, and fields that the stored one does not have keep their defaults. Data error that names
// `source` when a value is nonsense.
Config config_from(const StoredConfig& stored, std::string_view source);

struct ConfigChange {
  std::string path, before, now;  // values as in a TOML file
  Effect effect = Effect::Runtime;

  std::string text() const;  // "optim.beta2 = 0.95 (was 0.999)"
  bool operator==(const ConfigChange&) const = default;
};

struct ConfigDiff {
  std::vector<ConfigChange> changes;  // in the order of the description
  // "path = value" of what a later version has stored and this one cannot compare.
  std::vector<std::string> unknown;
  std::vector<std::string> renamed;  // notes on fields that are stored by an earlier path
};

// Fields that lay down learning rate and weight decay over the run. What they come to depends on
// the batch and the length of the run too: optim/lr_schedule_config.h compares that.
bool is_schedule_field(std::string_view path);

// Paths that begin so are no fields: the schedule that was followed (optim/lr_schedule_config.h).
inline constexpr std::string_view kScheduleEntries = "schedule.";

// Compares what the values mean: a field left to follow from others counts with what followed, and
// one that the stored configuration lacks counts with its default. The schedule is left out. Data
// error that names `source` when the stored configuration is nonsense.
ConfigDiff diff_config(const StoredConfig& stored, const Config& now, std::string_view source);

// Lines for the user, what matters most first; empty when nothing differs. With `finetune` a new
// training begins, so that another curve is no news.
std::string describe(const ConfigDiff& diff, bool finetune = false);

// One Usage error that lists all that stands in the way: another model, or another optimizer whose
// state would be loaded.
void require_resumable(const ConfigDiff& diff, const CheckpointConfig& checkpoint,
                       std::string_view source);

}  // namespace bev
