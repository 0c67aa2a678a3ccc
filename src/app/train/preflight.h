// Everything about a training that can be known before its first step.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/function_ref.h"
#include "data/training_data.h"
#include "plan/layout_plan.h"
#include "train/resume.h"

namespace bev::app {

// Looks at memory, data and output. One look finds all problems; require() throws them.
class Preflight {
 public:
  // `sharing`: see require_fit(). `writes`: whether this process will write the output. REQUIRES: a
  // checked configuration that trains.
  Preflight(const Config& config, int sharing, bool writes);

  // Throws what was found: the one problem itself, or a list of all with the first one's kind.
  void require() const;

  // What the run does: as the user has it, with the padding of what it continues from.
  const Config& config() const { return config_; }
  const LayoutPlan& layout() const { return *layout_; }
  // Of the first rank.
  const Plan& plan() const { return layout_->shown; }
  const TrainingData& data() const { return data_; }
  // What checkpoint.load means.
  const ResumePoints& resume_points() const { return resume_points_; }

 private:
  void attempt(FunctionRef<void()> look);

  Config config_;
  ResumePoints resume_points_;
  std::optional<LayoutPlan> layout_;
  TrainingData data_;
  std::vector<Error> problems_;
};

}  // namespace bev::app
