#include "app/train/train_rank.h"

#include <cmath>

#include "app/train/run_start.h"
#include "app/train/training_printer.h"
#include "base/file.h"
#include "bench/measure.h"
#include "config/resolve.h"
#include "convert/convert.h"
#include "convert/huggingface/huggingface.h"
#include "device/gpu_peaks.h"
#include "ops/make_device.h"
#include "train/gather_model.h"

namespace bev::app {

namespace {

// Empty when no trace is asked for. That it can be written is known before the training starts, and
// what goes wrong later does not end it.
std::function<void(const std::string&)> trace_writer(const Console& console, const LogConfig& log) {
  if (log.trace.empty()) return {};
  {
    const AtomicFile probe(log.trace);
  }
  return [&console, path = log.trace](const std::string& text) {
    try {
      AtomicFile file(path);
      file.write(text);
      file.commit();
    } catch (const Error& error) {
      console.log("bevatron: note: no trace: {}\n", error.what());
    }
  };
}

// A run that failed or was stopped at once must not replace the model of an earlier one by its
// initial weights, and one that trains nothing writes nothing.
bool is_worth_saving(const Config& config, const TrainSummary& s) {
  if (config.train.skip_train) return false;
  if (s.ending == ExitReason::Corruption) return false;
  return s.ending == ExitReason::Complete || (s.applied > 0 && s.ran > 0);
}

RankTimes times_of(const Progress& p) {
  return {.step = p.iteration, .compute = p.seconds - p.result.waited, .wait = p.result.waited};
}

// What the fraction of peak in the log refers to: of a processor measured now, of a GPU what its
// maker promises. 0: unknown.
double peak_flops(Device& device) {
  switch (device.kind()) {
    case DeviceKind::Cpu: return measure_gemm_peak(device);
    case DeviceKind::Cuda: return dense_bf16_peak(gpu_name());
    default: return 0;
  }
}

// Trains, and says what it does.
TrainSummary run_aloud(const RunOutput& out, const Console& console, TrainingState& assembly,
                       TrainLoop& trainer, LoggedCheckpoints* checkpoints) {
  const Config& config = out.config;
  Device& device = assembly.device;
  const Communicator& world = assembly.groups.world();
  const bool is_first = world.rank() == 0;
  const bool is_speaker = world.rank() == out.speaker;
  RunRecorder* record = is_first ? out.record : nullptr;
  TrainingPrinter printer(console,
                          {.interval = config.train.log_interval,
                           .flops_per_token = out.planned.model_flops_per_token,
                           .peak_flops = is_first ? peak_flops(device) * world.size() : 0,
                           .times = is_first && world.size() > 1 ? out.all_times : nullptr});
  bool is_under_way = false;
  TrainObserver observer{.iteration =
                             [&](const Progress& p) {
                               if (world.size() > 1) out.report_times(world.rank(), times_of(p));
                               if (record != nullptr) record->iteration(p, printer.slowest());
                               printer.iteration(p);
                               if (!is_under_way)
                                 print_after_first(console, config, out.planned, device);
                               is_under_way = true;
                             },
                         .validation =
                             [&](const Validation& v) {
                               if (record != nullptr) record->validation(v);
                               printer.validation(v);
                             },
                         .poll_requests =
                             [&] {
                               RunRequests requests =
                                   record != nullptr ? record->poll_requests() : RunRequests{};
                               requests.signal = out.stop.asked();
                               return requests;
                             },
                         .acknowledge =
                             [&](const RunRequests& requests, int64_t iteration) {
                               printer.clear_live();
                               if (record != nullptr)
                                 record->acknowledge(requests, iteration, checkpoints != nullptr);
                             },
                         .event =
                             [&](const GuardEvent& event) {
                               printer.clear_live();
                               if (is_speaker) console.log("guard     {}\n", event.text);
                               if (record != nullptr) record->event(event);
                             },
                         .evaluating =
                             [&] {
                               if (record != nullptr) record->evaluating();
                             },
                         .timers =
                             [&](const std::string& table) {
                               if (is_speaker) printer.record(table);
                             },
                         .trace = is_first ? trace_writer(console, config.log) : nullptr};
  if (checkpoints != nullptr) {
    checkpoints->print_to(is_speaker ? &printer : nullptr, record);
    checkpoints->add_to(observer);
  }
  const TrainSummary summary = trainer.run(observer);
  if (checkpoints != nullptr) {
    checkpoints->finish();
    checkpoints->print_to(nullptr, nullptr);
  }
  printer.finish();
  const auto stored = checkpoints != nullptr ? checkpoints->newest() : std::nullopt;
  if (is_speaker) printer.record(exit_lines(summary, stored ? stored->string() : std::string()));
  print_end(console, summary, printer.curve());
  return summary;
}

TrainSummary run_quietly(const RunOutput& out, int rank, TrainLoop& trainer,
                         LoggedCheckpoints* checkpoints) {
  TrainObserver observer{
      .iteration = [&](const Progress& p) { out.report_times(rank, times_of(p)); },
      .validation = [](const Validation&) {},
      .poll_requests = [&] { return RunRequests{.signal = out.stop.asked()}; }};
  if (checkpoints != nullptr) checkpoints->add_to(observer);
  const TrainSummary summary = trainer.run(observer);
  if (checkpoints != nullptr) checkpoints->finish();
  return summary;
}

// Before the first step: the first rank puts in order what other runs left.
void tidy_before(const RunOutput& out, const RunInit& start, const Console* console) {
  const RunPosition& position = start.start().position;
  if (out.record != nullptr) out.record->begin(position);
  const std::filesystem::path folder = save_folder(out.config);
  if (folder.empty()) return;
  CheckpointFolder(folder).clear_leftovers();
  const std::string moved =
      set_aside_later_checkpoints(CheckpointFolder(folder), position.iteration);
  if (!moved.empty()) Console::alert(console, 0, moved);
}

// The trained model in Hugging Face's format, by the first rank; all ranks together. Where several
// ranks have just saved it, nobody gathers what may be too large for one of them.
void write_model(const std::filesystem::path& model, const Config& config, TrainingState& assembly,
                 const std::optional<std::filesystem::path>& stored) {
  Communicator& world = assembly.groups.world();
  const bool is_first = world.rank() == 0;
  const bool is_there = stored && is_checkpoint(*stored);
  if (world.size() > 1 && world.all_reduce_max_host(is_first && !is_there ? 1 : 0) == 0) {
    if (is_first) checkpoint_to_huggingface(*stored, model, {}, {});
    return;
  }
  const Config whole = single_rank_config(config);
  std::unique_ptr<RankModel> gathered;
  Exec ex = assembly.executor.exec();
  if (world.size() > 1) gathered = gather_model(whole, assembly, ex);
  if (is_first) save_huggingface(model, whole, gathered ? gathered->params : assembly.params);
}

}  // namespace

RankResult train_rank(const RunOutput& out, const TrainingData& data, Device& device,
                      Communicator& world, const Console* console) {
  const Config& config = out.config;
  const bool is_first = world.rank() == 0;
  if (config.log.dispatch && console != nullptr) device.dispatch().enable();
  ProcessGroups groups(layout_of(config), world);
  const Plan plan = is_first ? out.planned : dry_run(config, {.rank = world.rank()});
  RunInit start(config, out.resume_points, device, groups, plan.arenas, console);
  TrainingState& assembly = start.assembly();
  if (is_first && !config.train.skip_train) tidy_before(out, start, console);
  std::optional<LoggedCheckpoints> checkpoints;
  if (!save_folder(config).empty() && !config.train.skip_train)
    checkpoints.emplace(config, out.config_text, out.planned.model_parameters, start, console);
  RankResult result;
  {
    TrainLoop trainer(assembly, data, start.start());
    LoggedCheckpoints* spoken = checkpoints ? &*checkpoints : nullptr;
    result.summary = console != nullptr ? run_aloud(out, *console, assembly, trainer, spoken)
                                        : run_quietly(out, world.rank(), trainer, spoken);
  }
  if (checkpoints) result.unsaved = checkpoints->finish();
  if (!out.keeps()) return result;
  if (!is_worth_saving(config, result.summary)) {
    result.saved = result.summary.ending == ExitReason::Corruption
                       ? "no model was written, since nobody knows which copy is right"
                       : "no model was written, since no update was applied";
    return result;
  }
  const std::filesystem::path model = out.directory.model();
  result.saved =
      format("the weights after {} updates are in {}", result.summary.applied, model.string());
  std::optional<std::filesystem::path> stored;
  if (checkpoints) stored = checkpoints->of(result.summary.iterations);
  write_model(model, config, assembly, stored);
  result.wrote_model = true;
  if (!is_first) return result;
  if (console != nullptr) console->log("wrote {}\n", model.string());
  return result;
}

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

LoggedCheckpoints::LoggedCheckpoints(const Config& config, const std::string& config_text,
                                     int64_t parameters, RunInit& start, const Console* console)
    : start_(start),
      console_(console),
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

void LoggedCheckpoints::add_to(TrainObserver& observer) {
  observer.is_save_due = [this](int64_t iteration) { return checkpoints_.is_due(iteration); };
  observer.save = [this](const RunPosition& position) {
    if (printer_ != nullptr) printer_->record(saving_line(position.iteration, folder_));
    if (record_ != nullptr) record_->saving();
    checkpoints_.save(position);
  };
  observer.between_steps = [this] { checkpoints_.poll(); };
  observer.finish_saving = [this] { return checkpoints_.finish(); };
  observer.roll_back = [this](int64_t most) { return roll_back(most); };
  requests_ = observer.poll_requests;
}

RunPosition LoggedCheckpoints::roll_back(int64_t most) {
  const CheckpointFolder folder(folder_);
  const RunPosition position = start_.roll_back_to(folder, most, console_);
  if (rank_ != 0) return position;
  // What is behind it belongs to a course that is given up.
  const std::string moved = set_aside_later_checkpoints(folder, position.iteration);
  if (!moved.empty()) Console::alert(console_, rank_, moved);
  if (printer_ != nullptr) printer_->rolled_back(position.iteration);
  if (record_ != nullptr) record_->rolled_back(position.iteration);
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
  if (record_ != nullptr)
    record_->saved(r, CheckpointFolder(folder_).place_of(r.iteration).string());
  if (printer_ != nullptr) {
    printer_->clear_live();
    if (r.failure.empty()) printer_->record(saved_line(r, folder_));
    if (!r.note.empty()) console_->log("bevatron: note: {}\n", r.note);
  }
  if (r.failure.empty() || (rank_ != 0 && !r.failed_here)) return;
  const std::optional<int64_t> next = checkpoints_.next_after(r.iteration);
  const bool goes_on = next && *next <= iterations_ && requests_().signal == 0;
  Console::alert(
      console_, rank_,
      format("the checkpoint of iteration {} is not saved: {}; {}", r.iteration, r.failure,
             goes_on ? format("the training goes on, and the next attempt is at {}", *next)
                     : "those before it are as they were"));
}

}  // namespace bev::app
