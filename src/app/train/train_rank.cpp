#include "app/train/train_rank.h"

#include <cmath>

#include "app/train/logged_checkpoints.h"
#include "app/train/run_start.h"
#include "app/train/training_printer.h"
#include "base/file.h"
#include "bench/machine_peak.h"
#include "config/resolve.h"
#include "convert/convert.h"
#include "convert/huggingface/huggingface.h"
#include "convert/huggingface/huggingface_config.h"
#include "device/gpu_peaks.h"
#include "ops/make_device.h"
#include "train/gather_model.h"

namespace bev::app {

namespace {

// A run that failed or was stopped before its first update must not replace the model of an earlier
// run, and a run that only validates writes nothing.
bool is_worth_saving(const Config& config, const TrainSummary& s) {
  if (config.train.skip_train) return false;
  if (s.ending == ExitReason::Corruption) return false;
  return s.ending == ExitReason::Complete || (s.applied > 0 && s.ran > 0);
}

RankTimes times_of(const Progress& p) {
  return {.step = p.iteration, .compute = p.seconds - p.result.waited, .wait = p.result.waited};
}

// The peak for the utilization in the log: measured on a CPU, the vendor's number of a GPU. 0:
// unknown.
double peak_flops(Device& device) {
  switch (device.kind()) {
    case DeviceKind::Cpu: return measure_gemm_peak(device);
    case DeviceKind::Cuda: return dense_bf16_peak(gpu_name());
    default: return 0;
  }
}

// The log of a rank without a console.
class QuietLog final : public TrainLog {
 public:
  QuietLog(const RunOutput& out, int rank) : out_(out), rank_(rank) {}

  void iteration(const Progress& p) override { out_.report_times(rank_, times_of(p)); }

 private:
  const RunOutput& out_;
  int rank_;
};

// The log of a rank with a console: log lines, and on rank 0 the files of the run.
class ConsoleLog final : public TrainLog {
 public:
  // `recorder`: null: the rank writes no files. Data error if log.trace cannot be written.
  ConsoleLog(const RunOutput& out, const Console& console, Device& device,
             const Communicator& world, RunRecorder* recorder, bool can_save)
      : out_(out),
        console_(console),
        device_(device),
        world_(world),
        recorder_(recorder),
        can_save_(can_save),
        printer_(console,
                 {.interval = out.config.train.log_interval,
                  .flops_per_token = out.planned.model_flops_per_token,
                  .peak_flops = world.rank() == 0 ? peak_flops(device) * world.size() : 0,
                  .times = world.rank() == 0 && world.size() > 1 ? out.all_times : nullptr}) {
    if (world.rank() == 0 && !out.config.log.trace.empty()) {
      const AtomicFile probe(out.config.log.trace);
    }
  }

  TrainingPrinter& printer() { return printer_; }
  // The rank that prints messages that are the same on all ranks.
  bool is_speaker() const { return world_.rank() == out_.speaker; }

  void iteration(const Progress& p) override {
    if (world_.size() > 1) out_.report_times(world_.rank(), times_of(p));
    if (recorder_ != nullptr) recorder_->iteration(p, printer_.slowest());
    printer_.iteration(p);
    if (is_first_) print_after_first(console_, out_.config, out_.planned, device_);
    is_first_ = false;
  }
  void evaluation_began() override {
    if (recorder_ != nullptr) recorder_->evaluating();
  }
  void validation(const Validation& v) override {
    if (recorder_ != nullptr) recorder_->validation(v);
    printer_.validation(v);
  }
  void event(const GuardEvent& event) override {
    printer_.clear_live();
    if (is_speaker()) console_.log("guard     {}\n", event.text);
    if (recorder_ != nullptr) recorder_->event(event);
  }
  void acknowledged(const RunRequests& requests, int64_t iteration) override {
    printer_.clear_live();
    if (recorder_ != nullptr) recorder_->acknowledge(requests, iteration, can_save_);
  }
  void timers(const std::string& table) override {
    if (is_speaker()) printer_.record(table);
  }
  void trace(const std::string& chrome_json) override {
    try {
      AtomicFile file(out_.config.log.trace);
      file.write(chrome_json);
      file.commit();
    } catch (const Error& error) {
      console_.log("bevatron: note: no trace: {}\n", error.what());
    }
  }

 private:
  const RunOutput& out_;
  const Console& console_;
  Device& device_;
  const Communicator& world_;
  RunRecorder* recorder_;
  bool can_save_;
  bool is_first_ = true;  // iteration
  TrainingPrinter printer_;
};

TrainSummary run_loop(const RunOutput& out, const TrainingData& data, RunInit& start,
                      LoggedCheckpoints* checkpoints, const Console* console) {
  TrainingState& state = start.state();
  const Communicator& world = state.groups.world();
  RunRecorder* recorder = world.rank() == 0 ? out.record : nullptr;
  const auto poll_requests = [&] {
    RunRequests requests = recorder != nullptr ? recorder->poll_requests() : RunRequests{};
    requests.signal = out.stop.asked();
    return requests;
  };
  if (console == nullptr) {
    QuietLog log(out, world.rank());
    return TrainLoop(state, data, start.start(), log, checkpoints, poll_requests).run();
  }
  ConsoleLog log(out, *console, state.device, world, recorder, checkpoints != nullptr);
  TrainingPrinter& printer = log.printer();
  if (checkpoints != nullptr) checkpoints->log_to(log.is_speaker() ? &printer : nullptr, recorder);
  const TrainSummary summary =
      TrainLoop(state, data, start.start(), log, checkpoints, poll_requests).run();
  if (checkpoints != nullptr) checkpoints->log_to(nullptr, nullptr);
  printer.finish();
  const auto stored = checkpoints != nullptr ? checkpoints->newest() : std::nullopt;
  if (log.is_speaker())
    printer.record(exit_lines(summary, stored ? stored->string() : std::string()));
  print_end(*console, summary, printer.curve());
  return summary;
}

// Before the first step: rank 0 cleans up the files of earlier runs.
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

// Rank 0 writes the trained model in Hugging Face format. All ranks together. If several ranks have
// just saved a checkpoint, rank 0 converts that, since the model may be too large for one rank.
void write_model(const std::filesystem::path& model, const Config& config, TrainingState& state,
                 const std::optional<std::filesystem::path>& stored) {
  Communicator& world = state.groups.world();
  const bool is_first = world.rank() == 0;
  const bool is_there = stored && is_checkpoint(*stored);
  if (world.size() > 1 && world.all_reduce_max_host(is_first && !is_there ? 1 : 0) == 0) {
    if (is_first) checkpoint_to_huggingface(*stored, model, {}, {});
    return;
  }
  const Config whole = single_rank_config(config);
  std::unique_ptr<RankModel> gathered;
  Exec ex = state.executor.exec();
  if (world.size() > 1) gathered = gather_model(whole, state, ex);
  if (is_first) save_huggingface(model, whole, gathered ? gathered->params : state.params);
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
  if (is_first && !config.train.skip_train) tidy_before(out, start, console);
  std::optional<LoggedCheckpoints> checkpoints;
  if (!save_folder(config).empty() && !config.train.skip_train)
    checkpoints.emplace(config, out.config_text, out.planned.model_parameters, start, out.stop,
                        console);
  RankResult result;
  result.summary = run_loop(out, data, start, checkpoints ? &*checkpoints : nullptr, console);
  if (checkpoints) result.unsaved = checkpoints->failure();
  if (!out.keeps()) return result;
  if (!is_worth_saving(config, result.summary)) {
    result.saved = result.summary.ending == ExitReason::Corruption
                       ? "no model was written, since nobody knows which copy is right"
                       : "no model was written, since no update was applied";
    return result;
  }
  if (const std::string misfit = huggingface_misfit(config); !misfit.empty()) {
    result.saved = format("the checkpoints are in {}", save_folder(config).string());
    if (console != nullptr)
      console->log("wrote no {}: {}; {}\n", out.directory.model().string(), misfit, result.saved);
    return result;
  }
  const std::filesystem::path model = out.directory.model();
  result.saved =
      format("the weights after {} updates are in {}", result.summary.applied, model.string());
  std::optional<std::filesystem::path> stored;
  if (checkpoints) stored = checkpoints->of(result.summary.iterations);
  write_model(model, config, start.state(), stored);
  result.wrote_model = true;
  if (!is_first) return result;
  if (console != nullptr) console->log("wrote {}\n", model.string());
  return result;
}

}  // namespace bev::app
