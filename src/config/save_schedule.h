// After which iterations of a run checkpoints are saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace bev {

// Every `interval` iterations, counted from the end of the phase before it, up to `until`.
struct SavePhase {
  int64_t interval = 0;
  int64_t until = 0;  // the last iteration of the phase; kNoEnd: there is none
  static constexpr int64_t kNoEnd = INT64_MAX;
  bool operator==(const SavePhase&) const = default;
};

// The phases of a text, or the reason why there are none.
struct ParsedPhases {
  std::vector<SavePhase> phases;
  std::string why{};  // names the part of the text
};

// "10:100,18:1000,1500": each phase is interval:until, the untils rise, and only the last phase may
// lack one. Blanks around a part do not count. REQUIRES: the text is not empty.
ParsedPhases parse_save_phases(std::string_view text);

inline constexpr std::string_view kLegalSavePhases =
    "interval:until,...,interval, such as 10:100,18:1000,1500; intervals of at least 1, each until "
    "above the one before it, and only the last phase without one";

class SaveSchedule {
 public:
  // Usage error when checkpoint.schedule is not a list of phases. REQUIRES: not both an interval
  // and phases.
  explicit SaveSchedule(const CheckpointConfig& config);

  // After this iteration, the first being 1. The one at the end of a run is no part of this.
  bool is_due(int64_t iteration) const;

  // Whether the checkpoint of this iteration stays whatever checkpoint.keep says: all that phases
  // ask for do.
  bool is_permanent(int64_t iteration) const { return has_phases_ && is_due(iteration); }

  // The first iteration above this one that is due. None: there is none.
  std::optional<int64_t> next_after(int64_t iteration) const;

 private:
  bool has_phases_;
  std::vector<SavePhase> phases_;
};

}  // namespace bev
