// What the folder of a run tells about it, whatever is missing or damaged there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/process.h"
#include "report/metrics_tail.h"
#include "report/run_status.h"

namespace bev::app {

struct RunFacts {
  std::filesystem::path folder{};
  // Of each file: what it says, or why it cannot be used. Neither: it is not there.
  std::optional<RunStatus> status{};
  std::string status_problem{};
  std::optional<LastMetrics> metrics{};
  std::string metrics_problem{};
  bool has_config = false, has_model = false;
  Life life = Life::Unknown;  // of the process that the status names

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
RunFacts run_facts(const std::filesystem::path& folder, const RunFacts* earlier = nullptr);

}  // namespace bev::app
