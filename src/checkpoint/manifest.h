// manifest.json of a checkpoint: everything that defines the run at a step besides the tensors, and
// the list of files. It does not depend on the layout that wrote it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/sample_ranges.h"

namespace bev {

// A file of a checkpoint besides the manifest.
struct CheckpointFile {
  std::string name;  // without a folder
  uint64_t bytes = 0;
  // Of the whole file; of a file of pieces only of its header, which holds those of the pieces.
  uint64_t checksum = 0;
  bool holds_pieces = true;
  bool operator==(const CheckpointFile&) const = default;
};

// A run that contributed: from its first iteration up to that of the next entry.
struct HistoryEntry {
  int64_t after_iteration = 0;       // where it began
  int64_t time = 0;                  // seconds since 1970
  std::string program;               // name and version
  std::string layout;                // in words
  std::vector<std::string> changes;  // of the configuration, against the run before
  bool operator==(const HistoryEntry&) const = default;
};

struct Manifest {
  static constexpr int kFormat = 1;

  int64_t iteration = 0;
  // Three positions: what the log and the ramp of the batch count; what the schedule of the
  // learning rate counts, which steps that were not applied do not advance; the next sample.
  int64_t consumed_samples = 0, scheduled_samples = 0, data_position = 0;
  std::vector<SampleRange> skipped{};    // data that was left out
  std::map<std::string, double> update;  // state of the rule of updates: loss scale, counters
  uint64_t seed = 0;                     // random numbers are counters: there is no other state
  std::map<std::string, std::string> config;  // every field by its path, as in a TOML file
  std::string optimizer;                      // empty: weights only
  int64_t parameters = 0;
  std::optional<double> loss, valid_loss;  // of this iteration, as far as they are known
  bool is_permanent = false;               // never removed by a rule of how many to keep
  int64_t time = 0;                        // seconds since 1970
  std::vector<HistoryEntry> history{};
  std::vector<CheckpointFile> files{};

  bool operator==(const Manifest&) const = default;
};

Json to_json(const CheckpointFile& file);
CheckpointFile parse_checkpoint_file(const Json& json, const std::string& source);

// Losses that are not finite are left out.
Json to_json(const Manifest& manifest);
// A Data error names `source` and what is wrong. Believes nothing: numbers are in range, file names
// are plain, no file stands twice.
Manifest parse_manifest(const Json& json, std::string_view source);

inline constexpr std::string_view kManifestName = "manifest.json";

// Writes manifest.json and manifest.json.xxh3, which holds its checksum as `xxhsum --check` reads
// it. Data error for a manifest that parse_manifest would refuse; then nothing is written.
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);
// Data error when one of the two is missing or damaged.
Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace bev
