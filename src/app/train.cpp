// bevatron train: plan, train, write the model.
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>

#include "app/launched_rank.h"
#include "app/preflight.h"
#include "app/restarted_run.h"
#include "app/run_start.h"
#include "app/spoken_checkpoints.h"
#include "app/stop_signal.h"
#include "app/terminal.h"
#include "app/training_printer.h"
#include "app/verb_config.h"
#include "app/verbs.h"
#include "base/check.h"
#include "base/file.h"
#include "bench/gpu_peaks.h"
#include "bench/machine.h"
#include "checkpoint/folder_lock.h"
#include "checkpoint/huggingface.h"
#include "comm/thread.h"
#include "config/print.h"
#include "config/rank_list.h"
#include "config/tokenizer_facts.h"
#include "convert/convert.h"
#include "data/fingerprint.h"
#include "ops/make_device.h"
#include "plan/fit.h"
#include "plan/report.h"
#include "train/run_checkpoints.h"
#include "train/run_directory.h"
#include "train/times_board.h"
#include "train/whole_model.h"

namespace bev::app {

namespace {

constexpr std::array<OwnFlag, 1> kFlags{{
    {"--dry-run", "", "check configuration, memory, data and output, print the plan and stop"},
}};

// A file of its own in one line; a blend with the share of each file and how often it is read.
void print_data(const Voice& voice, const TrainingData& data) {
  for (const TrainingData::Part& part : data.parts) {
    const bool blended = part.share < 1;
    voice.tell(
        "data      {}{}: {} tokens, {} samples for {}{}\n",
        blended ? format("{:5.2f} % ", 100 * part.share) : "", part.prefix.string(),
        with_commas(part.tokens), with_commas(part.windows),
        kSplitNames[static_cast<size_t>(part.split)],
        blended && part.split == Split::Train ? format(", read {:.2f} times", part.epochs) : "");
  }
}

// What else decides the numbers: threads do not, but people want to know them.
std::string arithmetic_of(const Config& config, const Plan& plan) {
  if (plan.device != DeviceKind::Cuda) return format(", {} threads", plan.threads);
  std::string text;
  if (plan.dtype == DType::f32)
    text += config.device.tf32 ? " with TF32 products (10-bit operands)" : ", true f32 products";
  if (config.device.deterministic) text += ", deterministic";
  if (config.optim.gradients == StatePrecision::Bf16) text += ", bf16 gradients of matrices";
  if (config.optim.first_moment == StatePrecision::Bf16 ||
      config.optim.second_moment == StatePrecision::Bf16)
    text += ", bf16 moments";
  return text;
}

void print_start(const Voice& voice, const Config& config, const Preflight& preflight) {
  const Plan& plan = preflight.plan();
  const TrainingData& data = preflight.data();
  const ResumePoints& points = preflight.resume_points();
  for (const std::string& note : data.notes) voice.tell("bevatron: note: {}\n", note);
  for (const std::string& alert : points.alerts) voice.tell("bevatron: alert: {}\n", alert);
  voice.tell("model     {} parameters, {} layers x {}, vocabulary {} padded to {}\n",
             with_commas(plan.model_parameters), plan.model.layers, plan.model.width,
             plan.model.vocab, plan.model.padded_vocab);
  voice.tell("device    {}, {}{}, {} planned\n", name_of_choice(plan.device), name_of(plan.dtype),
             arithmetic_of(config, plan), as_bytes(static_cast<double>(plan.memory_bytes())));
  if (plan.layout.world() > 1)
    voice.tell("layout    {}; the numbers above are of the first\n", describe(plan.layout));
  const std::string rise =
      config.train.ramp_start > 0 ? format("{} rising to ", config.train.ramp_start) : "";
  voice.tell("batch     {}{} sequences x {} tokens in {} micro-batches, {} iterations\n", rise,
             plan.batch.global_batch, plan.batch.sequence, plan.batch.micros,
             with_commas(plan.iterations));
  if (config.data.mock) voice.tell("data      made-up tokens\n");
  print_data(voice, data);
  if (!config.train.output.empty()) voice.tell("output    {}\n", config.train.output);
  if (plan.checkpoint_bytes > 0)
    voice.tell("save      {}, {} each\n", save_folder(config).string(),
               as_bytes(plan.checkpoint_bytes));
}

// Empty when no trace is asked for. That it can be written is known before the training starts, and
// what goes wrong later does not end it.
std::function<void(const std::string&)> trace_writer(const Voice& voice, const LogConfig& log) {
  if (log.trace.empty()) return {};
  {
    const AtomicFile probe(log.trace);
  }
  return [&voice, path = log.trace](const std::string& text) {
    try {
      AtomicFile file(path);
      file.write(text);
      file.commit();
    } catch (const Error& error) {
      voice.tell("bevatron: note: no trace: {}\n", error.what());
    }
  };
}

// What --log.dispatch asks for; after the first iteration every op has chosen.
void print_dispatch(const Voice& voice, Device& device) {
  for (const DispatchLog::Choice& c : device.dispatch().choices())
    voice.tell("dispatch  {}: {}{}\n", c.op, c.chosen,
               c.refused.empty() ? "" : format(" (refused: {})", c.refused));
}

void print_after_first(const Voice& voice, const Config& config, const Plan& plan, Device& device) {
  if (!device.rehearsed().empty()) voice.tell("tuned     {}\n", device.rehearsed());
  if (config.log.dispatch) print_dispatch(voice, device);
  if (config.device.deterministic && device.algorithms() != 0)
    voice.tell("algorithms {:016x} (nothing timed)\n", device.algorithms());
  if (device.is_asynchronous())
    voice.tell("memory    {} bytes allocated, {} planned\n",
               with_commas(static_cast<int64_t>(device.allocated_bytes())),
               with_commas(static_cast<int64_t>(plan.memory_bytes())));
}

std::string_view reason_of(Ending ending) {
  switch (ending) {
    case Ending::Complete: return "done";
    case Ending::Asked: return "stopped by a signal";
    case Ending::Interval: return "stopped by train.exit_interval";
    case Ending::Duration: return "stopped by train.exit_minutes";
    case Ending::NonFinite:
    case Ending::BadData: return "stopped by an error";
  }
  return "stopped";
}

void print_end(const Voice& voice, const TrainSummary& s, const std::string& curve) {
  if (s.ending == Ending::Complete && !curve.empty())
    voice.tell("loss of every iteration\n{}", curve);
  const bool had_nothing_to_do = s.ran == 0 && s.iterations > 0 && s.ending == Ending::Complete;
  voice.tell("{} after {} iterations", reason_of(s.ending), with_commas(s.iterations));
  if (had_nothing_to_do) voice.tell(", all of them before this run");
  // The absolute value takes the sign off what is not a number.
  if (s.ran > 0)
    voice.tell(", {}, {:.0f} tokens/s; loss {:.4f} -> {:.4f}", as_duration(s.seconds),
               s.tokens_per_second, std::abs(s.first_loss), std::abs(s.last_loss));
  if (s.valid_loss) voice.tell(", validation {:.4f}", *s.valid_loss);
  if (s.skipped > 0) voice.tell("; {} updates skipped", s.skipped);
  voice.tell("\n");
}

void print_next_steps(const Voice& voice, const Config& config) {
  const bool text = tokenizer_of(config) != nullptr;
  voice.tell(
      "next      bevatron eval {}{}\n", config.train.output,
      text ? format("\n          bevatron generate {} --prompt \"...\"", config.train.output) : "");
}

// A run that failed at once must not replace the model of an earlier one by its initial weights.
bool is_worth_saving(const TrainSummary& s) {
  return s.applied > 0 || (s.ending != Ending::NonFinite && s.ending != Ending::BadData);
}

// Throws when the run did not end well. REQUIRES: the weights are saved by now.
void require_good_end(const TrainSummary& summary, const std::string& saved) {
  if (summary.ending == Ending::NonFinite)
    throw Error(ErrorKind::Numerics,
                format("{}\n  the update was not applied; {}. A smaller optim.lr or optim.clip "
                       "may help; --guard.nonfinite skip goes on without such updates",
                       summary.reason, saved));
  if (summary.ending == Ending::BadData)
    throw Error(ErrorKind::Data, format("{}\n  {}", summary.reason, saved));
}

RankTimes times_of(const Progress& p) {
  return {.step = p.iteration, .compute = p.seconds - p.result.waited, .wait = p.result.waited};
}

// What the fraction of peak in the log refers to: of a processor measured now, of a GPU what its
// maker promises. 0: unknown.
double peak_flops(Device& device) {
  switch (device.kind()) {
    case DeviceKind::Cpu: return measure_product_peak(device);
    case DeviceKind::Cuda: return dense_bf16_peak(gpu_name());
    default: return 0;
  }
}

// Where ranks are threads.
constexpr int kMostThreads = 256;

// What a run does besides training.
struct RunOutput {
  const Config& config;
  const Plan& planned;  // of the first rank
  const ResumePoints& resume_points;
  std::string config_text;
  const RunDirectory& directory;
  MetricsLog* metrics;  // the first rank's
  const StopSignal& stop;
  std::function<void(int rank, const RankTimes& times)> report_times;
  std::function<std::vector<RankTimes>()> all_times;  // asked by the first rank

  bool keeps() const { return !config.train.output.empty(); }
};

DeviceConfig device_of_rank(const Config& config, bool shares_gpu) {
  DeviceConfig device = config.device;
  device.threads = threads_of_rank(config);
  // Ranks that share a GPU disturb each other's timing.
  if (shares_gpu) device.tune = false;
  return device;
}

struct RankResult {
  TrainSummary summary;
  std::string unsaved;  // why the last checkpoint is not there; empty: it is, or none was wanted
  std::string saved = "nothing was saved, since train.output is empty";
};

// Trains, and says what it does.
TrainSummary run_aloud(const RunOutput& out, const Voice& voice, Assembly& assembly,
                       Trainer& trainer, SpokenCheckpoints* checkpoints) {
  const Config& config = out.config;
  Device& device = assembly.device;
  const Communicator& world = assembly.groups.world();
  const bool is_first = world.rank() == 0;
  TrainingPrinter printer(voice, {.interval = config.train.log_interval,
                                  .flops_per_token = out.planned.model_flops_per_token,
                                  .peak_flops = is_first ? peak_flops(device) * world.size() : 0,
                                  .metrics = is_first ? out.metrics : nullptr,
                                  .times = is_first && world.size() > 1 ? out.all_times : nullptr});
  bool is_under_way = false;
  TrainObserver observer{.iteration =
                             [&](const Progress& p) {
                               if (world.size() > 1) out.report_times(world.rank(), times_of(p));
                               printer.iteration(p);
                               if (!is_under_way)
                                 print_after_first(voice, config, out.planned, device);
                               is_under_way = true;
                             },
                         .validation = [&](const Validation& v) { printer.validation(v); },
                         .should_stop = [&] { return out.stop.asked(); },
                         .trace = is_first ? trace_writer(voice, config.log) : nullptr};
  if (checkpoints != nullptr) {
    checkpoints->print_to(is_first ? &printer : nullptr);
    checkpoints->add_to(observer);
  }
  const TrainSummary summary = trainer.run(observer);
  if (checkpoints != nullptr) {
    checkpoints->finish();
    checkpoints->print_to(nullptr);
  }
  printer.finish();
  print_end(voice, summary, printer.curve());
  return summary;
}

TrainSummary run_quietly(const RunOutput& out, int rank, Trainer& trainer,
                         SpokenCheckpoints* checkpoints) {
  TrainObserver observer{
      .iteration = [&](const Progress& p) { out.report_times(rank, times_of(p)); },
      .validation = [](const Validation&) {},
      .should_stop = [&] { return out.stop.asked(); }};
  if (checkpoints != nullptr) checkpoints->add_to(observer);
  const TrainSummary summary = trainer.run(observer);
  if (checkpoints != nullptr) checkpoints->finish();
  return summary;
}

// Before the first step: the first rank puts in order what other runs left.
void tidy_before(const RunOutput& out, const RunStart& start, const Voice* voice) {
  const int64_t iteration = start.start().position.iteration;
  // A run that ended before its first checkpoint is done again from the start.
  if (out.metrics != nullptr && continues_output(out.config)) out.metrics->forget_after(iteration);
  if (out.metrics != nullptr)
    out.metrics->start(out.planned.model_parameters, out.planned.iterations);
  const std::filesystem::path folder = save_folder(out.config);
  if (folder.empty()) return;
  CheckpointFolder(folder).clear_leftovers();
  const std::string moved = set_later_aside(CheckpointFolder(folder), iteration);
  if (!moved.empty()) Voice::alert(voice, 0, moved);
}

// The trained model in Hugging Face's format, by the first rank; all ranks together. Where several
// ranks have just saved it, nobody gathers what may be too large for one of them.
void write_model(const std::filesystem::path& model, const Config& config, Assembly& assembly,
                 const std::optional<std::filesystem::path>& stored) {
  Communicator& world = assembly.groups.world();
  const bool is_first = world.rank() == 0;
  const bool is_there = stored && is_checkpoint(*stored);
  if (world.size() > 1 && world.largest(is_first && !is_there ? 1 : 0) == 0) {
    if (is_first) checkpoint_to_huggingface(*stored, model, {}, {});
    return;
  }
  const Config whole = on_one_rank(config);
  std::unique_ptr<PlacedModel> gathered;
  Exec ex = assembly.executor.exec();
  if (world.size() > 1) gathered = gather_model(whole, assembly, ex);
  if (is_first) save_huggingface(model, whole, gathered ? gathered->params : assembly.params);
}

// `voice`: absent where the rank says nothing.
RankResult train_rank(const RunOutput& out, const TrainingData& data, Device& device,
                      Communicator& world, const Voice* voice) {
  const Config& config = out.config;
  const bool is_first = world.rank() == 0;
  if (config.log.dispatch && voice != nullptr) device.dispatch().enable();
  Groups groups(layout_of(config), world);
  const Plan plan = is_first ? out.planned : dry_run(config, {.rank = world.rank()});
  RunStart start(config, out.resume_points, device, groups, plan.arenas, voice);
  Assembly& assembly = start.assembly();
  if (is_first) tidy_before(out, start, voice);
  std::optional<SpokenCheckpoints> checkpoints;
  if (!save_folder(config).empty())
    checkpoints.emplace(config, out.config_text, out.planned.model_parameters, start, voice);
  RankResult result;
  {
    Trainer trainer(assembly, data, start.start());
    SpokenCheckpoints* spoken = checkpoints ? &*checkpoints : nullptr;
    result.summary = voice != nullptr ? run_aloud(out, *voice, assembly, trainer, spoken)
                                      : run_quietly(out, world.rank(), trainer, spoken);
  }
  if (checkpoints) result.unsaved = checkpoints->finish();
  if (!out.keeps()) return result;
  if (!is_worth_saving(result.summary)) {
    result.saved = "nothing was saved, since no update was applied";
    return result;
  }
  const std::filesystem::path model = out.directory.model();
  result.saved =
      format("the weights after {} updates are in {}", result.summary.applied, model.string());
  std::optional<std::filesystem::path> stored;
  if (checkpoints) stored = checkpoints->of(result.summary.iterations);
  write_model(model, config, assembly, stored);
  if (!is_first) return result;
  if (voice != nullptr) voice->tell("wrote {}\n", model.string());
  return result;
}

// The first rank of all, or the only one here.
RankResult train_ranks(const RunOutput& out, const TrainingData& data, LaunchedRank* launched,
                       const Voice& voice) {
  if (launched != nullptr) {
    const std::unique_ptr<Device> device =
        make_device(device_of_rank(out.config, launched->shares_gpu()));
    const std::unique_ptr<Communicator> world = launched->make_world(*device);
    voice.tell("ranks     {}\n          {}\n", launched->describe(), launched->binding());
    return train_rank(out, data, *device, *world, &voice);
  }
  RankResult first;
  const int ranks = out.planned.layout.world();
  const std::chrono::duration<double, std::ratio<60>> limit(out.config.parallel.timeout_minutes);
  run_ranks(ranks, std::chrono::duration_cast<std::chrono::milliseconds>(limit),
            [&](Communicator& world) {
              const std::unique_ptr<Device> device =
                  make_device(device_of_rank(out.config, ranks > 1));
              const bool is_first = world.rank() == 0;
              const RankResult result =
                  train_rank(out, data, *device, world, is_first ? &voice : nullptr);
              if (is_first) first = result;
            });
  return first;
}

// Trains and saves. What the run printed to people is on stderr, its record on stdout. `stop` is
// set when the training starts, and left: other ranks may still write what was trained.
void run_training(const LoadedConfig& loaded, const Preflight& preflight, LaunchedRank* launched,
                  std::optional<StopSignal>& stop, const Voice& voice) {
  const Config& config = preflight.config();
  const bool is_first = launched == nullptr || launched->rank() == 0;
  const RunDirectory directory(config.train.output);
  std::optional<FolderLock> lock;
  if (is_first && !save_folder(config).empty()) lock.emplace(save_folder(config));
  std::optional<MetricsLog> metrics;
  if (is_first && !config.train.output.empty()) {
    directory.prepare(print_config(config, loaded.origins));
    metrics.emplace(directory.metrics_file());
  }
  // What has been trained is written first.
  stop.emplace();
  TimesBoard board(preflight.plan().layout.world());
  RunOutput out{.config = config,
                .planned = preflight.plan(),
                .resume_points = preflight.resume_points(),
                .config_text = print_config(config, loaded.origins),
                .directory = directory,
                .metrics = metrics ? &*metrics : nullptr,
                .stop = *stop,
                .report_times = [&](int rank, const RankTimes& t) { board.report(rank, t); },
                .all_times = [&] { return board.all(); }};
  if (launched != nullptr) {
    launched->control().activity().at_step(1);
    out.report_times = [&](int, const RankTimes& t) {
      launched->control().report_times(t);
      launched->control().activity().at_step(t.step + 1);
    };
    out.all_times = [&] { return launched->control().times(); };
  }
  const RankResult result = train_ranks(out, preflight.data(), launched, voice);
  const bool is_bad =
      result.summary.ending == Ending::NonFinite || result.summary.ending == Ending::BadData;
  if ((is_bad || !result.unsaved.empty()) && launched != nullptr) launched->end_together();
  require_good_end(result.summary, result.saved);
  BEV_CHECK(result.unsaved.empty(), Data, "the last checkpoint is not saved: {}; {}",
            result.unsaved, result.saved);
  BEV_CHECK(!metrics || !metrics->failure(), Data, "{}; {}", *metrics->failure(), result.saved);
  if (out.keeps()) print_next_steps(voice, config);
}

// The configuration as ranks compare it: where a value comes from does not count.
std::string values_of(const Config& config) {
  constexpr std::string_view kOrigin = "# default";
  std::istringstream lines(print_config(config, {}));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(kOrigin)) line.resize(line.size() - kOrigin.size());
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// What ranks compare: all of them see the same folder.
std::string checkpoints_text(const ResumePoints& points) {
  std::string text;
  for (const CheckpointPlace& place : points.places)
    text += format("iteration {}\n", place.iteration);
  return text;
}

void run_as_rank(const RankEnvironment& environment, LoadedConfig& loaded, const Voice& voice) {
  Config& config = loaded.config;
  const int rank = environment.rank;
  std::optional<StopSignal> stop;
  LaunchedRank launched(environment, config, voice);
  launched.run([&] {
    launched.require_same("the configuration", values_of(config));
    config.device.threads = launched.threads(config.device.threads);
    const Preflight preflight(config, launched.sharing_memory(config.device.kind), rank == 0);
    std::string data;
    launched.require_all_well([&] {
      preflight.require();
      data = fingerprint(preflight.data());
    });
    launched.require_same("the data", data);
    launched.require_same("the checkpoint", checkpoints_text(preflight.resume_points()));
    print_start(voice, preflight.config(), preflight);
    run_training(loaded, preflight, &launched, stop, voice);
  });
}

int train_launched(const RankEnvironment& environment, LoadedConfig& loaded) {
  const Config& config = loaded.config;
  const int rank = environment.rank;
  const Voice voice(
      RankList::parse(config.log.ranks)->has(rank),
      config.train.output.empty() ? "" : RunDirectory(config.train.output).rank_log(rank));
  try {
    run_as_rank(environment, loaded, voice);
  } catch (const std::exception& error) {
    voice.keep(format("bevatron: error: {}\n", error.what()));
    throw;
  }
  return 0;
}

std::optional<LoadedConfig> train_config(std::span<const std::string> args,
                                         const std::optional<RankEnvironment>& environment) {
  return config_for({.name = "train",
                     .summary = "Trains a model and writes it, with its log and its "
                                "configuration, into the folder train.output.",
                     .own = kFlags,
                     .purpose = Purpose::Train,
                     .launched = environment ? environment->size : 0,
                     .prints = !environment || environment->rank == 0},
                    args);
}

}  // namespace

int train(std::span<const std::string> args) {
  const std::optional<RankEnvironment> environment = own_environment();
  std::optional<LoadedConfig> loaded;
  try {
    loaded = train_config(args, environment);
  } catch (const Error& error) {
    if (!environment) throw;
    return say_once(*environment, error);
  }
  if (!loaded) return 0;
  continue_after_restart(loaded->config, loaded->origins, environment);
  const bool only_checks = loaded->has("--dry-run");
  if (!only_checks) {
    if (environment) return train_launched(*environment, *loaded);
    if (loaded->config.parallel.engine != EngineKind::Auto)
      return train_launched(alone_environment(), *loaded);
  }
  BEV_CHECK(environment || loaded->config.parallel.ranks <= kMostThreads, Usage,
            "{} ranks, each a thread of this process; legal are 1 to {}, and more where a launcher "
            "starts a process for each (docs/launching.md)",
            loaded->config.parallel.ranks, kMostThreads);
  const Voice voice(true);
  const Preflight preflight(loaded->config, kAllRanks, true);
  if (only_checks) {
    fmt::print("{}", plan_table(preflight.layout()));
    std::fflush(stdout);  // before what follows on stderr
  }
  preflight.require();
  print_start(voice, preflight.config(), preflight);
  if (!only_checks) {
    std::optional<StopSignal> stop;
    run_training(*loaded, preflight, nullptr, stop, voice);
    return 0;
  }
  fmt::print("the run can start: configuration, memory, data and output are in order\n");
  return 0;
}

}  // namespace bev::app
