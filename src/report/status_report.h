// What `bevatron status` says, as a pure function of what is known and the time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/process_identity.h"
#include "report/metrics_reader.h"
#include "report/status_file.h"

namespace bev::app {

// What the folder of a run tells about it, whatever is missing or damaged there.

struct RunInfo {
  std::filesystem::path folder{};
  // Of each file: what it says, or why it cannot be used. Neither: it is not there.
  std::optional<RunStatus> status{};
  std::string status_problem{};
  std::optional<LastMetrics> metrics{};
  std::string metrics_problem{};
  bool has_config = false, has_model = false;
  ProcessState life = ProcessState::Unknown;  // of the process that the status names

  // The newest checkpoint that can be used.
  struct Saved {
    std::filesystem::path path{};
    int64_t iteration = 0;
    double time = 0;  // seconds since 1970
  };
  std::optional<Saved> saved{};
  std::string saved_problem{};                // of a newer one, or of all
  std::filesystem::path newest_checkpoint{};  // usable or not

  // Of config.toml, for runs whose status does not tell.
  int64_t ranks = 1;
  std::string layout{};
};

// Looks, writes nothing. Checkpoints are not read again where the newest is that of an `earlier`
// look. Data error where the folder is not that of a run.
RunInfo run_facts(const std::filesystem::path& folder, const RunInfo* earlier = nullptr);

enum class RunState : uint8_t {
  Starting,
  Training,
  Evaluating,
  Saving,
  Ended,
  Failed,
  Crashed,  // its process no longer exists and reported no end
  Silent,   // nothing was heard of it for a while, and nobody knows whether it lives
  Unknown,  // there is no status
};

std::string_view name_of(RunState state);

// Whether more can be heard of the run.
bool is_over(RunState state);

struct StatusRow {
  std::string name, text;
};

struct StatusReport {
  RunState state = RunState::Unknown;
  std::vector<StatusRow> rows;
  std::vector<std::string> notes;  // what is missing or odd, a sentence each
  std::string line;                // all in one, for a log
  std::string next;                // the command that continues the run; empty: there is none
};

// `now`: seconds since 1970.
StatusReport describe(const RunInfo& facts, double now);

// The same for programs; docs/running.md has the keys.
Json to_json(const RunInfo& facts, double now);

}  // namespace bev::app
