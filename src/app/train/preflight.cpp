#include "app/train/preflight.h"

#include "base/format.h"
#include "plan/memory_fit.h"
#include "train/run_directory.h"

namespace bev::app {

Preflight::Preflight(const Config& given, int sharing, bool writes) : config_(given) {
  const Config& config = config_;
  attempt([&] {
    resume_points_ = find_resume_points(given.checkpoint);
    config_ = with_padding_of(resume_points_, given);
    if (resume_points_.places.empty()) return;
    const CheckpointPlace& newest = resume_points_.places.front();
    continue_from(read_manifest(newest.path), config, newest.path.string());
  });
  layout_ = plan_layout(config);
  attempt([&] { require_fit(config, *layout_, sharing); });
  attempt([&] { data_ = open_training_data(config); });
  if (writes) attempt([&] { check_save_folder(config, plan().checkpoint_bytes); });
  const size_t model_bytes = static_cast<size_t>(plan().model_parameters) * size_of(plan().dtype);
  if (writes && !config.train.output.empty())
    attempt([&] { RunDirectory(config.train.output).check(config, model_bytes); });
}

void Preflight::require() const {
  if (problems_.empty()) return;
  if (problems_.size() == 1) throw Error(problems_.front());
  std::string list = format("{} problems", problems_.size());
  for (size_t i = 0; i < problems_.size(); ++i)
    list += format("\n{}. {}", i + 1, problems_[i].what());
  throw Error(problems_.front().kind, list);
}

void Preflight::attempt(FunctionRef<void()> look) {
  try {
    look();
  } catch (const Error& error) {
    if (error.kind == ErrorKind::Internal) throw;
    problems_.push_back(error);
  }
}

}  // namespace bev::app
