#include "app/train/logged_checkpoints.h"

#include "base/format.h"
#include "config/resolve.h"
#include "train/resume.h"

namespace bev::app {

namespace {

// The lines of Megatron-LM, with additional fields at the end.
std::string saving_line(int64_t iteration, const std::filesystem::path& folder) {
  return format("saving checkpoint at iteration {:7d} to {}", iteration, folder.string());
}

std::string saved_line(const SaveReport& r, const std::filesystem::path& folder) {
  return format(
      "  successfully saved checkpoint at iteration {:7d} to {} | {} in {}, {}/s, pause {:.3f} s",
      r.iteration, folder.string(), as_bytes(r.bytes), as_duration(r.seconds),
      as_bytes(r.bytes / r.seconds), r.pause);
}

}  // namespace

LoggedCheckpoints::LoggedCheckpoints(const Config& config, const std::string& config_text,
                                     int64_t parameters, RunInit& start, const StopSignal& stop,
                                     const Console* console)
    : start_(start),
      stop_(stop),
      console_(console),
      rank_(start.state().groups.world().rank()),
      folder_(save_folder(config)),
      iterations_(resolve_iterations(config)),
      checkpoints_(start.state(), {.folder = folder_,
                                   .config = config,
                                   .schedule = start.schedule(),
                                   .config_text = config_text,
                                   .history = start.history(),
                                   .parameters = parameters,
                                   .ended = [this](const SaveReport& r) { ended(r); }}) {}

void LoggedCheckpoints::save(const RunPosition& position) {
  if (printer_ != nullptr) printer_->record(saving_line(position.iteration, folder_));
  if (recorder_ != nullptr) recorder_->saving();
  checkpoints_.save(position);
}

RunPosition LoggedCheckpoints::roll_back(int64_t last_iteration) {
  const CheckpointFolder folder(folder_);
  const RunPosition position = start_.roll_back_to(folder, last_iteration, console_);
  if (rank_ != 0) return position;
  // The run writes the checkpoints of later iterations again.
  const std::string moved = set_aside_later_checkpoints(folder, position.iteration);
  if (!moved.empty()) Console::alert(console_, rank_, moved);
  if (printer_ != nullptr) printer_->rolled_back(position.iteration);
  if (recorder_ != nullptr) recorder_->rolled_back(position.iteration);
  return position;
}

std::optional<std::filesystem::path> LoggedCheckpoints::newest() const {
  if (newest_) return CheckpointFolder(folder_).place_of(*newest_);
  return start_.began_with();
}

std::optional<std::filesystem::path> LoggedCheckpoints::of(int64_t iteration) const {
  if (newest_ != iteration) return std::nullopt;
  return CheckpointFolder(folder_).place_of(iteration);
}

void LoggedCheckpoints::ended(const SaveReport& r) {
  failure_ = r.failure;
  if (r.failure.empty()) newest_ = r.iteration;
  if (recorder_ != nullptr)
    recorder_->saved(r, CheckpointFolder(folder_).place_of(r.iteration).string());
  if (printer_ != nullptr) {
    printer_->clear_live();
    if (r.failure.empty()) printer_->record(saved_line(r, folder_));
    if (!r.note.empty()) console_->log("bevatron: note: {}\n", r.note);
  }
  if (r.failure.empty() || (rank_ != 0 && !r.failed_here)) return;
  const std::optional<int64_t> next = checkpoints_.next_after(r.iteration);
  const bool goes_on = next && *next <= iterations_ && stop_.asked() == 0;
  Console::alert(
      console_, rank_,
      format("the checkpoint of iteration {} is not saved: {}; {}", r.iteration, r.failure,
             goes_on ? format("the training goes on, and the next attempt is at {}", *next)
                     : "those before it are as they were"));
}

}  // namespace bev::app
