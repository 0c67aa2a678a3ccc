#include "app/train/logged_checkpoints.h"

#include "config/resolve.h"

namespace bev::app {

namespace {

// In the words of Megatron-LM; what we add stands behind them.
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

SpokenCheckpoints::SpokenCheckpoints(const Config& config, const std::string& config_text,
                                     int64_t parameters, RunStart& start, const Voice* voice)
    : start_(start),
      voice_(voice),
      rank_(start.assembly().groups.world().rank()),
      folder_(save_folder(config)),
      iterations_(resolve_iterations(config)),
      checkpoints_(start.assembly(), {.folder = folder_,
                                      .config = config,
                                      .schedule = start.schedule(),
                                      .config_text = config_text,
                                      .history = start.history(),
                                      .parameters = parameters,
                                      .ended = [this](const SaveReport& r) { ended(r); }}) {}

void SpokenCheckpoints::add_to(TrainObserver& observer) {
  observer.is_save_due = [this](int64_t iteration) { return checkpoints_.is_due(iteration); };
  observer.save = [this](const RunPosition& position) {
    if (printer_ != nullptr) printer_->record(saving_line(position.iteration, folder_));
    if (record_ != nullptr) record_->saving();
    checkpoints_.save(position);
  };
  observer.between_steps = [this] { checkpoints_.poll(); };
  observer.finish_saving = [this] { return checkpoints_.finish(); };
  observer.roll_back = [this](int64_t most) { return roll_back(most); };
  wishes_ = observer.wishes;
}

RunPosition SpokenCheckpoints::roll_back(int64_t most) {
  const CheckpointFolder folder(folder_);
  const RunPosition position = start_.go_back(folder, most, voice_);
  if (rank_ != 0) return position;
  // What is behind it belongs to a course that is given up.
  const std::string moved = set_later_aside(folder, position.iteration);
  if (!moved.empty()) Voice::alert(voice_, rank_, moved);
  if (printer_ != nullptr) printer_->rolled_back(position.iteration);
  if (record_ != nullptr) record_->rolled_back(position.iteration);
  return position;
}

std::optional<std::filesystem::path> SpokenCheckpoints::newest() const {
  if (newest_) return CheckpointFolder(folder_).place_of(*newest_);
  return start_.began_with();
}

std::optional<std::filesystem::path> SpokenCheckpoints::of(int64_t iteration) const {
  if (newest_ != iteration) return std::nullopt;
  return CheckpointFolder(folder_).place_of(iteration);
}

void SpokenCheckpoints::ended(const SaveReport& r) {
  failure_ = r.failure;
  if (r.failure.empty()) newest_ = r.iteration;
  if (record_ != nullptr)
    record_->saved(r, CheckpointFolder(folder_).place_of(r.iteration).string());
  if (printer_ != nullptr) {
    printer_->clear_live();
    if (r.failure.empty()) printer_->record(saved_line(r, folder_));
    if (!r.note.empty()) voice_->tell("bevatron: note: {}\n", r.note);
  }
  if (r.failure.empty() || (rank_ != 0 && !r.failed_here)) return;
  const std::optional<int64_t> next = checkpoints_.next_after(r.iteration);
  const bool goes_on = next && *next <= iterations_ && wishes_().signal == 0;
  Voice::alert(voice_, rank_,
               format("the checkpoint of iteration {} is not saved: {}; {}", r.iteration, r.failure,
                      goes_on ? format("the training goes on, and the next attempt is at {}", *next)
                              : "those before it are as they were"));
}

}  // namespace bev::app
